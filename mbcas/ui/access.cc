#include "mbcas/ui/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace mbcas::ui {

Result<std::string> randomSecret() {
  std::array<unsigned char, 32> bytes{};
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return failure("the system has no random numbers");
    filled += static_cast<std::size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool sameSecret(std::string_view one, std::string_view other) {
  if (one.empty() || one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned>(one[i]) ^ static_cast<unsigned>(other[i]);
  }
  return difference == 0;
}

Result<void> Access::open(int port) {
  port_ = port;
  Result<std::string> token = randomSecret();
  if (!token) return failure(token.error());
  const std::scoped_lock lock(mutex_);
  token_ = *std::move(token);
  return {};
}

std::string Access::address() const {
  const std::scoped_lock lock(mutex_);
  // Browsers send what comes after # to no server.
  return fmt::format("http://127.0.0.1:{}/#{}", port_, token_);
}

std::optional<std::string> Access::refusal(const Request& request) const {
  // Of another name for this machine a foreign page may have become the owner (DNS rebinding).
  const std::string own = fmt::format("127.0.0.1:{}", port_);
  const std::string local = fmt::format("localhost:{}", port_);
  const std::string_view host = request.header("host");
  if (host != own && host != local) {
    return fmt::format("This page has the address http://{}/ only.", own);
  }
  const std::string_view origin = request.header("origin");
  const bool foreign = !origin.empty() && origin != fmt::format("http://{}", host);
  const std::string_view site = request.header("sec-fetch-site");
  const bool asked_by_other_site = site == "cross-site" || site == "same-site";
  // A person may follow a link to the page from anywhere; the page alone asks for data.
  const bool asks_for_data = request.path.starts_with("/api/");
  if (foreign || (asks_for_data && asked_by_other_site)) return "Another page asks for this.";
  if (request.method == "POST" && origin.empty()) return "The origin of the request is missing.";
  return std::nullopt;
}

std::optional<std::string> Access::exchange(std::string_view token) {
  const std::scoped_lock lock(mutex_);
  if (!sameSecret(token, token_)) return std::nullopt;
  Result<std::string> next = randomSecret();
  Result<std::string> session = randomSecret();
  token_ = next ? *std::move(next) : "";
  if (!session) return std::nullopt;
  if (sessions_.size() == kMostSessions) sessions_.pop_front();
  sessions_.push_back(*session);
  return *std::move(session);
}

bool Access::hasSession(const Request& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = request.header("authorization");
  if (!given.starts_with(kScheme)) return false;
  // All of them are looked at, so that the time tells nothing.
  bool found = false;
  for (const std::string& session : sessions_) {
    found |= sameSecret(given.substr(kScheme.size()), session);
  }
  return found;
}

}  // namespace mbcas::ui
