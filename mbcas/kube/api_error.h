// What can go wrong when talking to an API server, as one type: the server's Status when it
// answered, the transport's reason when it did not.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::kube {

struct ApiError {
  // One of details.causes: for a validation failure the field that is wrong, for an apply conflict
  // the field and, in the message, the manager that owns it.
  struct Cause {
    std::string reason;
    std::string message;
    std::string field;
  };

  int code = 0;  // HTTP status; 0 if the server did not answer
  std::string
      reason;  // of the Status ("Conflict", "Invalid", ...), or of the transport (kConnect...)
  std::string message;  // one line for a person; never holds a credential
  std::vector<Cause> causes;
  std::optional<Nanos> retry_after;  // the server's hint, at most kMostRetryAfter
  static constexpr std::chrono::seconds kMostRetryAfter{60};

  // Reasons of the transport, with code 0.
  static constexpr std::string_view kConnect = "ConnectionFailed";  // nothing was sent
  static constexpr std::string_view kBroken = "ConnectionBroken";   // ended before the answer did
  static constexpr std::string_view kTimeout = "Timeout";
  static constexpr std::string_view kTooLarge = "ResponseTooLarge";
  static constexpr std::string_view kMalformed = "MalformedResponse";
  static constexpr std::string_view kUnreadable = "UnreadableObject";  // one object of many
  static constexpr std::string_view kCancelled = "Cancelled";
  static constexpr std::string_view kCredentials = "CredentialsUnavailable";
  static constexpr std::string_view kFenced = "MayNotWrite";  // see ClientOptions::may_write

  bool answered() const { return code != 0; }
  bool notFound() const { return code == 404; }
  bool alreadyExists() const { return code == 409 && reason == "AlreadyExists"; }
  bool conflict() const { return code == 409 && reason != "AlreadyExists"; }
  bool invalid() const { return code == 422; }
  // The wanted history is gone (410): list again.
  bool expired() const { return code == 410 || reason == "Expired" || reason == "Gone"; }
  // 504 "Too large resource version": the server has not caught up with what we have seen.
  bool tooLargeVersion() const;
  // Worth another try later without changing the request.
  bool transient() const { return !answered() || code == 429 || code >= 500; }
  // An apply that was refused because other managers own fields; one cause per field.
  bool applyConflict() const;

  // "409 Conflict: the object has been modified".
  std::string describe() const;
  Error toError() const { return Error(describe()); }
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

inline std::unexpected<ApiError> apiFailure(ApiError error) {
  return std::unexpected(std::move(error));
}

// Reads a Status object.
ApiError decodeStatus(JsonCursor status);
// The error of an HTTP answer: its Status if the body is one, else what the code says.
ApiError errorFromResponse(int code, std::string& body, std::optional<Nanos> retry_after);

}  // namespace mbcas::kube
