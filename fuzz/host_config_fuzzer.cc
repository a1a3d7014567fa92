// `mbcas run`'s file: whatever it is given, an error or pods that keep their promises.
#include <cstdint>
#include <cstdlib>

#include "mbcas/host/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = mbcas::host::parseConfig(text);
  if (!config) {
    if (config.error().message().empty()) std::abort();
    return 0;
  }
  for (const auto& pod : config->pods) {
    if (pod.cgroup.empty() == pod.command.empty()) std::abort();
    if (pod.min && pod.max && *pod.min > *pod.max) std::abort();
    if (!pod.cgroup.empty() && (pod.cgroup + "/").find("/../") != std::string::npos) std::abort();
  }
  return 0;
}
