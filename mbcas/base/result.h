// Errors as values: a function that can fail returns Result<T>, never throws, prints or aborts.
//
//   Result<Config> load(const std::string& path) {
//     Result<std::string> text = readFile(path);
//     if (!text) return failure(std::move(text).error().within("loading " + path));
//     ...
//     return failure("line 3: not a number: \"x\"");
//   }
//
// Each hop adds what it was doing, outermost first: "loading a.yaml: line 3: not a number".
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace mbcas {

class [[nodiscard]] Error {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}

  // One line for a person; says what failed and, where it can, the offending input.
  const std::string& message() const { return message_; }

  // The same error as seen by a caller that was doing `what`.
  Error within(std::string_view what) && {
    message_.insert(0, ": ").insert(0, what);
    return std::move(*this);
  }

  friend bool operator==(const Error&, const Error&) = default;

 private:
  std::string message_;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> failure(std::string message) {
  return std::unexpected(Error(std::move(message)));
}
inline std::unexpected<Error> failure(Error error) {
  return std::unexpected(std::move(error));
}

}  // namespace mbcas
