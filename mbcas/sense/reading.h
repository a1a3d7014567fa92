// Counts the outcome of a reading, in the same way for every sampler.
#pragma once

#include "mbcas/kernel/cgroup_reader.h"

namespace mbcas::sense {

// Whether a reading has a value. A failure is counted, unless the kernel has no such file.
// `met_gone` is set when the cgroup was removed.
template <class T, class Counters>
bool countReading(const kernel::ReadResult<T>& result, Counters& counters, bool& met_gone) {
  if (!result && result.error().absent()) return false;
  ++counters.reads;
  if (result) return true;
  if (result.error().gone()) {
    ++counters.gone;
    met_gone = true;
  } else {
    ++counters.failures;
    counters.last_failure = result.error().detail;
  }
  return false;
}

}  // namespace mbcas::sense
