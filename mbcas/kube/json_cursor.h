// Reading JSON forwards, once, keeping only what is asked for. A thin face on simdjson's on-demand
// parser: no exception leaves it, no header of it is seen, and the first thing that goes wrong is
// remembered with the place where it did ("spec.containers[1].name: not a string").
//
//   JsonParser parser;
//   Result<void> done = parser.parse(text, [&](JsonCursor root) {
//     root.members([&](std::string_view key, JsonCursor value) {
//       if (key == "name") name = value.text();
//       if (key == "tags") value.elements([&](JsonCursor tag) { tags.emplace_back(tag.text()); });
//     });
//   });
//
// What is not asked for is skipped, and of skipped parts only the structure is checked.
// null reads as absent everywhere, as Kubernetes means it: no members, no elements, "", 0, false.
//
// An object that came as protobuf is read by the same code: protobuf.h shows it in its JSON form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "mbcas/base/result.h"

namespace mbcas::kube {

// A callable passed down the stack; does not own it.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
  FunctionRef(F&& f)
      : target_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* target, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(target))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  void* target_;
  R (*call_)(void*, Args...);
};

class JsonCursor {
 public:
  using VisitMember = FunctionRef<void(std::string_view key, JsonCursor value)>;
  using VisitElement = FunctionRef<void(JsonCursor value)>;
  void members(VisitMember visit);
  void elements(VisitElement visit);

  // Valid until the next parse.
  std::string_view text();
  // A string, or a number as it is written: quantities and IntOrString come as either.
  std::string_view scalar();
  std::int64_t integer();
  bool boolean();
  bool isNull();

  // The value is of the right type but makes no sense.
  void fail(std::string_view reason);

 private:
  friend class SimdjsonDocument;
  friend class ProtobufDocument;
  class Document;  // json_document.h
  JsonCursor(void* value, Document* document) : value_(value), document_(document) {}

  void* value_;  // the document knows its type
  Document* document_;
};

class JsonParser {
 public:
  JsonParser();
  ~JsonParser();
  JsonParser(JsonParser&&) noexcept;
  JsonParser& operator=(JsonParser&&) noexcept;

  // `text` is not changed, but its capacity grows: the parser reads in whole vectors.
  Result<void> parse(std::string& text, FunctionRef<void(JsonCursor)> visit);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::kube
