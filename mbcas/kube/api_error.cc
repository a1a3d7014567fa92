#include "mbcas/kube/api_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/kube/protobuf.h"

namespace mbcas::kube {
namespace {

// Enough of a body that is no Status (a proxy's page, say) to recognise it.
constexpr std::size_t kExcerpt = 200;

std::string oneLine(std::string_view text) {
  std::string line(text.substr(0, kExcerpt));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = ' ';
  }
  return line;
}

}  // namespace

bool ApiError::tooLargeVersion() const {
  for (const Cause& cause : causes) {
    if (cause.reason == "ResourceVersionTooLarge") return true;
  }
  return code == 504 && message.find("Too large resource version") != std::string::npos;
}

bool ApiError::applyConflict() const {
  return conflict() && !causes.empty() && causes.front().reason == "FieldManagerConflict";
}

std::string ApiError::describe() const {
  if (!answered()) return fmt::format("{}: {}", reason, message);
  return fmt::format("{} {}: {}", code, reason, message);
}

ApiError decodeStatus(JsonCursor status) {
  ApiError error;
  status.members([&](std::string_view key, JsonCursor value) {
    if (key == "code") error.code = static_cast<int>(value.integer());
    if (key == "reason") error.reason = value.text();
    if (key == "message") error.message = value.text();
    if (key != "details") return;
    value.members([&](std::string_view detail, JsonCursor inner) {
      if (detail == "retryAfterSeconds") {
        if (const std::int64_t seconds = inner.integer(); seconds > 0) {
          error.retry_after = std::min(std::chrono::seconds(seconds), ApiError::kMostRetryAfter);
        }
      }
      if (detail != "causes") return;
      inner.elements([&](JsonCursor element) {
        ApiError::Cause cause;
        element.members([&](std::string_view name, JsonCursor text) {
          if (name == "reason") cause.reason = text.text();
          if (name == "message") cause.message = text.text();
          if (name == "field") cause.field = text.text();
        });
        error.causes.push_back(std::move(cause));
      });
    });
  });
  return error;
}

ApiError errorFromResponse(int code, std::string& body, std::optional<Nanos> retry_after) {
  ApiError error;
  const auto read = [&](JsonCursor root) { error = decodeStatus(root); };
  Result<void> parsed;
  if (const Result<ProtobufEnvelope> envelope = openProtobuf(body)) {
    parsed = parseProtobuf(kProtobufStatus, envelope->object, read);
  } else {
    parsed = JsonParser().parse(body, read);
  }
  if (!parsed) error = {.message = oneLine(body)};
  error.code = code;
  if (error.reason.empty()) error.reason = "Unknown";
  if (retry_after) error.retry_after = std::min<Nanos>(*retry_after, ApiError::kMostRetryAfter);
  return error;
}

}  // namespace mbcas::kube
