// Protobuf from a server: any chunking of a list or a watch gives the same objects and the same
// verdict, an error's body is read or quoted, and nothing crashes. After any object that has a name
// and a version a watch and a list go on: the good one behind it is seen. The first byte seeds the
// chunking.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"
#include "mbcas/kube/watch_stream.h"
#include "test/support/pod_text.h"

namespace {

using namespace mbcas;
using namespace mbcas::kube;

struct Seen {
  std::vector<std::string> objects;
  std::string error;
  bool operator==(const Seen&) const = default;
};

template <class Reader>
void feed(Reader& reader, std::string_view bytes, unsigned seed, Seen& seen) {
  while (!bytes.empty()) {
    seed = seed * 1103515245 + 12345;
    const std::string_view piece = bytes.substr(0, 1 + (seed >> 16) % 200);
    if (const Result<void> done = reader.receive(piece); !done) {
      seen.error = done.error().message();
      return;
    }
    bytes.remove_prefix(piece.size());
  }
  if (const auto end = reader.finish(); !end) seen.error = end.error().message();
}

Seen readList(std::string_view bytes, unsigned seed) {
  Seen seen;
  Decoder decoder;
  ListReader reader(Pod::kind(), decoder, [&](const ObjectPtr& object) {
    seen.objects.push_back(test::textOf(static_cast<const Pod&>(*object)));
  });
  feed(reader, bytes, seed, seen);
  return seen;
}

Seen readWatch(std::string_view bytes, unsigned seed) {
  Seen seen;
  Decoder decoder;
  WatchReader reader(Pod::kind(), decoder, [&](const WatchEvent& event) {
    std::string text = event.resource_version + event.error.describe();
    if (event.object) text += test::textOf(static_cast<const Pod&>(*event.object));
    seen.objects.push_back(std::move(text));
  });
  feed(reader, bytes, seed, seen);
  return seen;
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}
std::string field(unsigned number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
std::string envelope(std::string_view kind, std::string_view object) {
  return std::string(kProtobufMagic) + field(1, field(1, "v1") + field(2, kind)) + field(2, object);
}
std::string event(std::string_view object) {
  const std::string bytes = field(1, "ADDED") + field(2, field(1, envelope("Pod", object)));
  std::string framed;
  for (int shift = 24; shift >= 0; shift -= 8) framed += static_cast<char>(bytes.size() >> shift);
  return framed + bytes;
}

void goesOnAfter(std::string_view object) {
  const Result<PassedOver> found = Decoder::identifyProtobuf(object, Error("none"));
  if (!found || found->name.empty() || found->resource_version.empty()) return;
  const std::string good = field(1, field(1, "good") + field(6, "7"));
  Decoder decoder;
  decoder.keepAtMost(16 << 10);
  std::string last;
  WatchReader watch(Pod::kind(), decoder, [&](const WatchEvent& seen) {
    last = seen.object ? seen.object->meta.name.string() : "";
  });
  if (!watch.receive(event(object) + event(good)) || !watch.finish() || last != "good") {
    std::abort();
  }
  last.clear();
  ListReader list(Pod::kind(), decoder,
                  [&](const ObjectPtr& read) { last = read->meta.name.string(); });
  const std::string items = field(1, field(2, "9")) + field(2, object) + field(2, good);
  if (!list.receive(envelope("PodList", items)) || !list.finish() || last != "good") std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!(readList(bytes, data[0]) == readList(bytes, data[0] + 1000U))) std::abort();
  if (!(readWatch(bytes, data[0]) == readWatch(bytes, data[0] + 1000U))) std::abort();
  goesOnAfter(bytes);
  Decoder decoder;
  (void)decoder.decodeProtobuf(Pod::kind(), bytes);
  (void)decoder.decodeProtobuf(ConfigMap::kind(), bytes);
  std::string body(bytes);
  (void)errorFromResponse(500, body, std::nullopt);
  return 0;
}
