// A file that somebody sent: read or refused, and what was read and is written is read as the same
// again. Likewise what a page asks.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "mbcas/cli/explain.h"
#include "mbcas/cli/recording.h"
#include "mbcas/cli/what_if.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas::cli;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto recording = parseRecording(text)) {
    const auto again = parseRecording(recordingText(*recording));
    if (!again || *again != *recording) std::abort();
  }
  if (auto decision = parseDecision(text)) {
    Evidence evidence{.pod = decision->pod.pod, .node = decision->node, .now = decision->time};
    evidence.decision = *std::move(decision);
    (void)explanationJson(evidence, explain(evidence));
  }
  if (const auto question = parseWhatIf(text)) (void)whatIfJson(answer(*question));
  if (const auto pods = parsePodQuestion(text)) (void)pods->asksFor("shop", "web-1", "node-1");
  return 0;
}
