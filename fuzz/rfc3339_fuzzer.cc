// Any text either is refused or is a time that survives being written and read again.
#include <cstdint>
#include <cstdlib>

#include "mbcas/base/time.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas;
  const auto time = parseRfc3339(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!time) return 0;
  const auto again = parseRfc3339(formatRfc3339(*time, TimePrecision::kMicros));
  if (!again || *again != std::chrono::floor<std::chrono::microseconds>(*time)) std::abort();
  return 0;
}
