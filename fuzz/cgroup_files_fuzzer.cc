// Every parser of a cgroup file and of /proc/stat, on the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "mbcas/kernel/cpu_set.h"
#include "mbcas/kernel/parse.h"

namespace {

using namespace mbcas;

// Never negative, and an error stays short enough for a log line.
template <class T, class Good>
void check(const Result<T>& result, Good good) {
  if (result ? !good(*result) : result.error().message().size() > 200) std::abort();
}

bool positive(Nanos time) {
  return time >= Nanos(0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(kernel::parseCpuStat(text), [](const kernel::CpuStat& stat) {
    return (!stat.usage || positive(*stat.usage)) &&
           (!stat.throttling || positive(stat.throttling->time));
  });
  check(kernel::parseCpuStatLocal(text), positive);
  check(kernel::parseCpuMax(text), [](const kernel::CpuLimit& limit) {
    return limit.period > Nanos(0) && (!limit.quota || positive(*limit.quota));
  });
  check(kernel::parseCfsQuota(text),
        [](std::optional<Nanos> quota) { return !quota || positive(*quota); });
  check(kernel::parseMicros(text), positive);
  check(kernel::parseNanos(text), positive);
  check(kernel::parseCount(text), [](std::uint64_t) { return true; });
  check(kernel::parseProcStat(text), [](const kernel::MachineTime&) { return true; });
  check(kernel::parseCpuList(text), [](const kernel::CpuSet& set) {
    return set.count() <= kernel::CpuSet::kMost && kernel::parseCpuList(set.toString()) == set;
  });
  check(kernel::parsePressure(text), [](const kernel::Pressure& pressure) {
    return positive(pressure.some) && (!pressure.full || positive(*pressure.full));
  });
  return 0;
}
