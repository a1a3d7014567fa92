// How the allocator serves a program that is to stay small.
#pragma once

#include <malloc.h>

#include <utility>

namespace mbcas {

// One arena for all threads, and what is freed goes back to the system. Before any thread starts.
inline void tuneMemory() {
  for (const auto& [parameter, value] :
       {std::pair(M_ARENA_MAX, 1), {M_MMAP_THRESHOLD, 128 << 10}, {M_TRIM_THRESHOLD, 128 << 10}}) {
    ::mallopt(parameter, value);  // NOLINT(concurrency-mt-unsafe): see above
  }
}

}  // namespace mbcas
