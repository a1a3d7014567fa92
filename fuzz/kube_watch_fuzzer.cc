// Bytes from a server: any chunking of a watch gives the same events and the same verdict, a list
// and a single object are read or refused, and nothing crashes. After any object that has a name
// and a version a watch and a list go on: the good one behind it is seen. The first byte seeds the
// chunking.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"
#include "mbcas/kube/watch_stream.h"

namespace {

using namespace mbcas;
using namespace mbcas::kube;

struct Seen {
  std::vector<std::string> events;
  std::string error;
  bool operator==(const Seen&) const = default;
};

Seen readWatch(std::string_view text, unsigned seed) {
  Seen seen;
  Decoder decoder;
  WatchReader reader(Pod::kind(), decoder, [&](WatchEvent event) {
    std::string line = std::to_string(static_cast<int>(event.type)) + event.resource_version +
                       event.error.describe();
    if (event.object) line += objectKey(event.object->meta);
    seen.events.push_back(std::move(line));
  });
  while (!text.empty()) {
    seed = seed * 1103515245 + 12345;
    const std::size_t size = seed == 0 ? text.size() : 1 + (seed >> 16) % 64;
    if (const Result<void> done = reader.receive(text.substr(0, size)); !done) {
      seen.error = done.error().message();
      return seen;
    }
    text.remove_prefix(std::min(size, text.size()));
  }
  if (const Result<void> done = reader.finish(); !done) seen.error = done.error().message();
  return seen;
}

void readWhole(std::string_view text) {
  Decoder decoder;
  ListReader reader(Pod::kind(), decoder, [](const ObjectPtr&) {});
  if (reader.receive(text)) (void)reader.finish();
  for (const Kind* kind :
       {&Pod::kind(), &VerticalPodAutoscaler::kind(), &PodDisruptionBudget::kind(),
        &LimitRange::kind(), &HorizontalPodAutoscaler::kind()}) {
    std::string json(text);
    (void)decoder.decode(*kind, json);
  }
}

constexpr std::string_view kGood = R"({"metadata":{"name":"good","resourceVersion":"7"}})";

// Whether a server could have sent this as an object: one well-formed value that says what it is.
bool isObject(std::string_view text) {
  int frames = 0;
  JsonSplitter splitter(JsonSplitter::Mode::kSequence, kMaxObject);
  std::string whole;
  const bool split = splitter
                         .push(text,
                               [&](std::string& frame) {
                                 ++frames;
                                 whole = frame;
                                 return true;
                               })
                         .has_value();
  if (!split || !splitter.finish() || frames != 1 || !whole.starts_with('{')) return false;
  Decoder decoder;
  const Result<PassedOver> found = decoder.identify(whole, Error("none"));
  return found && !found->name.empty() && !found->resource_version.empty();
}

void goesOnAfter(const Kind& kind, std::string_view object) {
  Decoder decoder;
  decoder.keepAtMost(16 << 10);
  std::string last;
  WatchReader watch(kind, decoder, [&](const WatchEvent& event) {
    last = event.object ? event.object->meta.name.string() : "";
  });
  const std::string events = R"({"type":"ADDED","object":)" + std::string(object) +
                             R"(}{"type":"ADDED","object":)" + std::string(kGood) + "}";
  if (!watch.receive(events) || !watch.finish() || last != "good") std::abort();
  last.clear();
  ListReader list(kind, decoder, [&](const ObjectPtr& read) { last = read->meta.name.string(); });
  const std::string items = R"({"metadata":{"resourceVersion":"9"},"items":[)" +
                            std::string(object) + "," + std::string(kGood) + "]}";
  if (!list.receive(items) || !list.finish() || last != "good") std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!(readWatch(text, data[0]) == readWatch(text, data[0] + 1000U))) std::abort();
  readWhole(text);
  if (isObject(text)) {
    for (const Kind* kind : {&Pod::kind(), &Node::kind(), &Lease::kind(), &ResourceQuota::kind(),
                             &LimitRange::kind(), &HorizontalPodAutoscaler::kind(),
                             &PodDisruptionBudget::kind(), &VerticalPodAutoscaler::kind()}) {
      goesOnAfter(*kind, text);
    }
  }
  return 0;
}
