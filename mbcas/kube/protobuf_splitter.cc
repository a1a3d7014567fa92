#include "mbcas/kube/protobuf_splitter.h"

#include <fmt/format.h>

#include <algorithm>

namespace mbcas::kube {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kKeptBuffer = 256 << 10;

std::unexpected<Error> malformed() {
  return failure("a malformed protobuf list");
}

std::unexpected<Error> tooLarge(std::size_t bound) {
  return failure(fmt::format("an object larger than {} bytes", bound));
}

// What was held back and the chunk, as one; the chunk itself, uncopied, if nothing was.
std::string_view joined(std::string& held, std::string_view chunk) {
  if (held.empty()) return chunk;
  held += chunk;
  return held;
}

void holdBack(std::string& held, std::string_view rest) {
  if (rest.empty() || held.empty()) {
    held = rest;
  } else {
    held.erase(0, held.size() - rest.size());  // the rest is its end
  }
  // One large object must not cost its size for as long as the stream lasts.
  if (held.capacity() > kKeptBuffer && held.size() < kKeptBuffer / 2) held.shrink_to_fit();
}

}  // namespace

Result<void> ProtobufSequence::push(std::string_view chunk,
                                    FunctionRef<bool(std::string_view)> on_frame) {
  std::string_view rest = joined(held_, chunk);
  while (rest.size() >= kLengthBytes) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
      length = length << 8 | static_cast<unsigned char>(rest[i]);
    }
    if (length > max_frame_) return tooLarge(max_frame_);
    if (rest.size() < kLengthBytes + length) break;
    if (!on_frame(rest.substr(kLengthBytes, length))) return {};
    rest.remove_prefix(kLengthBytes + length);
  }
  holdBack(held_, rest);
  return {};
}

Result<void> ProtobufSequence::finish() const {
  if (!held_.empty()) return failure("the stream ended inside an event");
  return {};
}

Result<void> ProtobufList::push(std::string_view chunk,
                                FunctionRef<bool(std::string_view)> on_item) {
  std::string_view rest = joined(held_, chunk);
  for (;;) {
    const Result<Step> done = step(rest, on_item);
    if (!done) return failure(done.error());
    if (*done == Step::kStop) return {};
    if (*done == Step::kWait) break;
  }
  holdBack(held_, rest);
  return {};
}

Result<void> ProtobufList::finish() const {
  if (part_ != Part::kTail || !held_.empty()) return failure("the list ended early");
  return {};
}

// One field, the magic, or the head of the field that is the list.
Result<ProtobufList::Step> ProtobufList::step(std::string_view& bytes,
                                              FunctionRef<bool(std::string_view)> on_item) {
  if (part_ == Part::kMagic) {
    const std::size_t known = std::min(bytes.size(), kProtobufMagic.size());
    if (bytes.substr(0, known) != kProtobufMagic.substr(0, known)) return malformed();
    if (known < kProtobufMagic.size()) return Step::kWait;
    bytes.remove_prefix(known);
    part_ = Part::kHead;
    return Step::kGoOn;
  }
  if (part_ == Part::kList && list_left_ == 0) part_ = Part::kTail;

  const bool in_list = part_ == Part::kList;
  const std::uint64_t bound = in_list ? list_left_ : max_frame_;
  std::string_view rest = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), bound));
  WireField field;
  const WireRead header = takeWireHeader(rest, field);
  if (header == WireRead::kMalformed) return malformed();
  if (header == WireRead::kEnd) {
    if (in_list && rest.size() == list_left_) return malformed();  // crosses the list's end
    return Step::kWait;
  }
  const std::uint64_t header_size = std::min<std::uint64_t>(bytes.size(), bound) - rest.size();
  if (field.type == WireField::Type::kBytes && field.number == 2 && part_ == Part::kHead) {
    list_left_ = field.value;
    bytes.remove_prefix(header_size);
    part_ = Part::kList;
    return Step::kGoOn;
  }
  const std::uint64_t size = payloadSize(field);
  if (size > max_frame_) return tooLarge(max_frame_);
  if (in_list && header_size + size > list_left_) return malformed();
  if (bytes.size() < header_size + size) return Step::kWait;

  field.bytes = bytes.substr(header_size, size);
  bytes.remove_prefix(header_size + size);
  const bool wanted = field.type == WireField::Type::kBytes;
  if (in_list) {
    list_left_ -= header_size + size;
    if (wanted && field.number == 1) metadata_ = field.bytes;
    if (wanted && field.number == 2 && !on_item(field.bytes)) return Step::kStop;
  } else if (wanted && field.number == 2) {
    return malformed();  // a second list
  } else if (wanted && field.number == 1) {
    kind_ = protobufKind(field.bytes);
  }
  return Step::kGoOn;
}

}  // namespace mbcas::kube
