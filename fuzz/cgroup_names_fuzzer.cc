// Names of directories in a kubepods tree: what is recognised has the shape it must have.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "mbcas/kernel/names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas::kernel;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view parent = text.substr(0, size / 2);
  const auto pod = parsePodName(text);
  if (pod) {
    if (pod->uid.size() != 36 && pod->uid.size() != 32) std::abort();
    if (pod->uid.find('_') != std::string::npos) std::abort();
    if (isPodParent(text, parent)) std::abort();
  }
  const auto container = parseContainerName(text);
  if (container && (container->id.size() != 64 || pod)) std::abort();
  (void)isPodParent(text, parent);
  (void)qosOf(text, parent);
  return 0;
}
