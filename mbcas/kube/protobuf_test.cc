// Protobuf gives the same objects as JSON. The captures are one list and one watch of a real
// kube-apiserver, each in both encodings.
#include "mbcas/kube/protobuf.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <iterator>

#include "mbcas/base/time.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"
#include "mbcas/kube/watch_stream.h"
#include "test/support/pod_text.h"

namespace mbcas::kube {
namespace {

std::string capture(const std::string& name) {
  std::ifstream file("test/captures/kube/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Read {
  std::vector<std::string> objects;
  std::string error;
  std::string end;
  bool operator==(const Read&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Read& read) {
  for (const std::string& object : read.objects) out << object;
  return out << read.error << " " << read.end;
}

// The bytes in pieces of these sizes, the last again and again.
template <class Reader>
void feed(Reader& reader, std::string_view bytes, const std::vector<std::size_t>& sizes,
          Read& read) {
  for (std::size_t i = 0; !bytes.empty(); ++i) {
    const std::string_view piece = bytes.substr(0, sizes[std::min(i, sizes.size() - 1)]);
    if (const Result<void> done = reader.receive(piece); !done) {
      read.error = done.error().message();
      return;
    }
    bytes.remove_prefix(piece.size());
  }
  const auto end = reader.finish();
  if (!end) read.error = end.error().message();
  if constexpr (requires { end->next; }) {
    if (end) read.end = end->resource_version + " " + end->next;
  }
}

Read readList(std::string_view bytes, const std::vector<std::size_t>& sizes = {1 << 20}) {
  Read read;
  Decoder decoder;
  ListReader reader(Pod::kind(), decoder, [&](const ObjectPtr& object) {
    read.objects.push_back(test::textOf(static_cast<const Pod&>(*object)));
  });
  feed(reader, bytes, sizes, read);
  return read;
}

Read readWatch(std::string_view bytes, const std::vector<std::size_t>& sizes = {1 << 20}) {
  Read read;
  Decoder decoder;
  WatchReader reader(Pod::kind(), decoder, [&](const WatchEvent& event) {
    std::string text = std::to_string(static_cast<int>(event.type)) + event.resource_version +
                       event.error.describe();
    if (event.object) text += test::textOf(static_cast<const Pod&>(*event.object));
    read.objects.push_back(text);
  });
  feed(reader, bytes, sizes, read);
  return read;
}

std::vector<std::size_t> anySizes(std::size_t most) {
  auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, most));
  sizes.push_back(*rc::gen::inRange<std::size_t>(1, most));
  return sizes;
}

void damage(std::string& bytes) {
  const int times = *rc::gen::inRange(1, 5);
  for (int i = 0; i < times; ++i) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
  }
}

TEST(Protobuf, AListGivesTheSamePodsAsJson) {
  const Read json = readList(capture("pods.json"));
  EXPECT_EQ(json.error, "");
  EXPECT_EQ(json.objects.size(), 8u);
  EXPECT_EQ(readList(capture("pods.pb")), json);
}

TEST(Protobuf, AWatchGivesTheSameEventsAsJson) {
  const Read json = readWatch(capture("pods-watch.json"));
  EXPECT_EQ(json.error, "");
  EXPECT_GE(json.objects.size(), 9u);
  EXPECT_NE(json.objects.back().find("410 Expired"), std::string::npos);
  EXPECT_EQ(readWatch(capture("pods-watch.pb")), json);
}

RC_GTEST_PROP(Protobuf, AnyChunkingGivesTheSame, ()) {
  static const std::string kList = capture("pods.pb");
  static const std::string kWatch = capture("pods-watch.pb");
  static const Read kWholeList = readList(kList);
  static const Read kWholeWatch = readWatch(kWatch);
  const std::vector<std::size_t> sizes = anySizes(500);
  RC_ASSERT(readList(kList, sizes) == kWholeList);
  RC_ASSERT(readWatch(kWatch, sizes) == kWholeWatch);
}

TEST(Protobuf, EveryByteAloneGivesTheSame) {
  EXPECT_EQ(readList(capture("pods.pb"), {1}), readList(capture("pods.pb")));
  EXPECT_EQ(readWatch(capture("pods-watch.pb"), {1}), readWatch(capture("pods-watch.pb")));
}

TEST(Protobuf, EveryTruncationIsAnError) {
  const std::string list = capture("pods.pb");
  const std::string tail("\x1a\x00\x22\x00", 4);  // of the envelope: says nothing, so not missed
  ASSERT_TRUE(list.ends_with(tail));
  for (std::size_t size = 0; size < list.size() - tail.size(); ++size) {
    ASSERT_NE(readList(std::string_view(list).substr(0, size)).error, "") << size;
  }
}

// Flipped bytes: an error or other objects, never a crash, and the same however it is cut.
RC_GTEST_PROP(Protobuf, SurvivesDamage, ()) {
  std::string list = capture("pods.pb");
  std::string watch = capture("pods-watch.pb");
  damage(list);
  damage(watch);
  const std::vector<std::size_t> sizes = anySizes(5000);
  RC_ASSERT(readList(list, sizes) == readList(list));
  RC_ASSERT(readWatch(watch, sizes) == readWatch(watch));
}

// --- the wire ---

std::string bytesField(int number, std::string_view bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} +
         std::string(bytes);
}

std::string podError(const std::string& bytes) {
  Decoder decoder;
  const Result<ObjectPtr> pod = decoder.decodeProtobuf(Pod::kind(), bytes);
  return pod ? "" : pod.error().message();
}

TEST(Protobuf, SaysWhereItWentWrong) {
  const std::string meta = bytesField(1, bytesField(1, "p"));
  EXPECT_EQ(podError(meta), "");
  EXPECT_EQ(podError(""), "decoding a Pod: metadata.name is missing");
  EXPECT_EQ(podError(meta + bytesField(2, bytesField(2, "\xff"))),
            "decoding a Pod p: spec.containers[0]: malformed protobuf");
  EXPECT_EQ(podError(meta + "\x10\x01"), "decoding a Pod p: malformed protobuf");  // spec: 1
  const std::string amount = bytesField(1, "cpu") + bytesField(2, bytesField(1, "1x"));
  const std::string container = bytesField(8, bytesField(1, amount));
  EXPECT_TRUE(podError(meta + bytesField(2, bytesField(2, container)))
                  .starts_with("decoding a Pod p: spec.containers[0].resources.limits.cpu: "));
}

Result<ObjectPtr> decodePod(const std::string& bytes) {
  Decoder decoder;
  return decoder.decodeProtobuf(Pod::kind(), bytes);
}

// Go accepts any bytes for a text, and its JSON has U+FFFD for each byte that is not UTF-8.
TEST(Protobuf, ReadsTextThatIsNotUtf8AsItsJsonForm) {
  const auto annotated = [](std::string_view key, std::string_view value) {
    const std::string entry = bytesField(1, key) + bytesField(2, value);
    const Result<ObjectPtr> pod =
        decodePod(bytesField(1, bytesField(1, "p") + bytesField(12, entry)));
    EXPECT_TRUE(pod);
    if (!pod || (*pod)->meta.annotations.size() != 1) return std::string();
    const KeyValue& kept = (*pod)->meta.annotations[0];
    return kept.key.string() + "=" + kept.value.string();
  };
  EXPECT_EQ(annotated("a", "\xff"), "a=\uFFFD");
  EXPECT_EQ(annotated("a\xc3", "x\xc3(y"), "a\uFFFD=x\uFFFD(y");
  EXPECT_EQ(annotated("a", "\xe2\x82"), "a=\uFFFD\uFFFD") << "a character that is cut off";
  EXPECT_EQ(annotated("a", "\xe2\x82\xac\xf0\x9f\x98\x80\x80"), "a=\u20AC\U0001F600\uFFFD");
  EXPECT_EQ(annotated("a", "\xed\xa0\x80"), "a=\uFFFD\uFFFD\uFFFD") << "half a surrogate pair";
}

TEST(Protobuf, ReadsTimesThatAreFarAwayAsTheNearest) {
  const auto deleted = [](const std::string& varint) {
    const Result<ObjectPtr> pod =
        decodePod(bytesField(1, bytesField(1, "p") + bytesField(9, std::string("\x08") + varint)));
    return pod ? (*pod)->meta.deleted : WallTime{};
  };
  const std::string year2311("\xb0\xec\xa4\x92\x28");  // 10'775'770'672
  EXPECT_EQ(deleted(year2311), kLatestTime);
  EXPECT_EQ(deleted(std::string(8, '\xff') + "\x7f"), kLatestTime);    // 2^63 - 1
  EXPECT_EQ(deleted(std::string(9, '\x80') + "\x01"), kEarliestTime);  // -2^63
}

TEST(Protobuf, RepeatedFieldsNeedNotStandTogether) {
  const std::string bytes =
      bytesField(1, bytesField(1, "p")) +
      bytesField(2, bytesField(2, bytesField(1, "a")) + bytesField(10, "node") +
                        bytesField(2, bytesField(1, "b")));
  Decoder decoder;
  const Result<ObjectPtr> object = decoder.decodeProtobuf(Pod::kind(), bytes);
  ASSERT_TRUE(object) << object.error().message();
  const auto& pod = static_cast<const Pod&>(**object);
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[1].name, "b");
  EXPECT_EQ(pod.node, "node");
}

TEST(Protobuf, RefusesNumbersThatAreTooLong) {
  WireField field;
  for (const std::string& bytes :
       {std::string("\x08") + std::string(10, '\xff'),           // a number without an end
        std::string("\x08") + std::string(9, '\xff') + "\x02",   // beyond 64 bits
        std::string("\x0b\x00", 2), std::string("\x00\x00", 2),  // a group, field 0
        std::string("\x0a\x05xx"), std::string("\x09xxx"), std::string("\x0dxxx")}) {
    std::string_view rest = bytes;
    EXPECT_EQ(takeWireField(rest, field), WireRead::kMalformed);
  }
  std::string_view most("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  ASSERT_EQ(takeWireField(most, field), WireRead::kField);
  EXPECT_EQ(static_cast<std::int64_t>(field.value), -1);
}

TEST(Protobuf, RefusesWhatIsTooLarge) {
  ProtobufSequence events(100);
  const auto ignore = [](std::string_view) { return true; };
  EXPECT_TRUE(events.push(std::string_view("\0\0\0\x02xx\0\0", 8), ignore));
  EXPECT_FALSE(events.finish());
  EXPECT_FALSE(events.push(std::string_view("\0\x65", 2), ignore));

  ProtobufList list(100);
  EXPECT_TRUE(list.push(kProtobufMagic, ignore));
  EXPECT_FALSE(list.push("\x12\x80\x08\x12\xf4\x03", ignore));  // an item of 500 bytes
  // An item that is longer than the list it is in.
  ProtobufList shorter(100);
  EXPECT_TRUE(shorter.push(kProtobufMagic, ignore));
  EXPECT_FALSE(shorter.push("\x12\x05\x12\x08", ignore));
}

TEST(Protobuf, RefusesAListOfSomethingElse) {
  std::string list = capture("pods.pb");
  list.replace(list.find("PodList"), 7, "CatList");
  EXPECT_EQ(readList(list).error, "expected a list of Pod, not a CatList");
}

TEST(Protobuf, ReadsTheStatusOfARefusal) {
  const std::string cause = bytesField(1, "r") + bytesField(2, "why") + bytesField(3, "f");
  const std::string status = bytesField(3, "not here") + bytesField(4, "NotFound") +
                             bytesField(5, bytesField(4, cause) + "\x28\x07") + "\x30\x94\x03";
  std::string body =
      std::string(kProtobufMagic) + bytesField(1, bytesField(2, "Status")) + bytesField(2, status);
  const ApiError error = errorFromResponse(404, body, std::nullopt);
  EXPECT_EQ(error.describe(), "404 NotFound: not here");
  EXPECT_EQ(error.retry_after, std::chrono::seconds(7));
  ASSERT_EQ(error.causes.size(), 1u);
  EXPECT_EQ(error.causes[0].field, "f");
}

}  // namespace
}  // namespace mbcas::kube
