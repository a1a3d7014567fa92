// Bytes from a server or from somebody's annotation: read or refused, never a crash; and what was
// read and is written is read as the same again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "mbcas/podallocation/marks.h"
#include "mbcas/podallocation/original_resources.h"
#include "mbcas/podallocation/pod_allocation.h"

namespace {

using namespace mbcas;
using namespace mbcas::podallocation;
using Ptr = std::shared_ptr<const PodAllocation>;

// What any writer of ours can mean; others may say what no writer would, such as 10^20 cores.
bool writable(const Spec& spec) {
  return spec.reason.size() <= kLongestReason;
}

void allocation(const std::string& text) {
  const Result<Ptr> read = kube::decodeObject<PodAllocation>(text);
  if (!read) return;
  const Spec spec = (*read)->specValue();
  const Result<Ptr> spec_again = kube::decodeObject<PodAllocation>(applySpec({"pod", "uid"}, spec));
  if (!spec_again || (writable(spec) && (*spec_again)->specValue() != spec)) std::abort();

  Status status = (*read)->statusValue();
  const std::string written = applyStatus((*read)->meta, status);
  const Result<Ptr> status_again = kube::decodeObject<PodAllocation>(written);
  if (!status_again) std::abort();
  // Times have whole seconds and weights three decimals once written: then nothing changes more.
  if (applyStatus((*status_again)->meta, (*status_again)->statusValue()) != written) std::abort();
}

void original(const std::string& text) {
  const auto read = parseOriginal(text);
  if (!read) return;
  const auto again = parseOriginal(encodeOriginal(*read));
  if (!again || *again != *read) std::abort();
}

void marks(const std::string& text) {
  MarkReader reader;
  const News news = reader.read(text);
  if (news.uids.size() > text.size() || reader.read(text) != News{}) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  allocation(text);
  original(text);
  marks(text);
  return 0;
}
