// Who may see the page's data: the user who started the command, in a browser on the same machine.
//
// The address that the command prints ends in a token that is good once. The page exchanges it for
// a session, which it sends in the header of every request. Both are kept out of cookies, because
// browsers send cookies of 127.0.0.1 to servers on all of its ports, which may be other users'.
//
//   if (auto why = access.refusal(request)) ...                // not from this very page
//   std::optional<std::string> session = access.exchange(token);
//   access.hasSession(request)
//
// One thread, apart from address().
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/ui/request.h"

namespace mbcas::ui {

// 256 random bits in hexadecimal digits.
Result<std::string> randomSecret();
// In a time that depends on the length alone.
bool sameSecret(std::string_view one, std::string_view other);

class Access {
 public:
  static constexpr std::size_t kMostSessions = 16;

  // Before the first request.
  Result<void> open(int port);

  // With a token that has not been used. Any thread.
  std::string address() const;

  // Whether a request comes from the page itself, or from no page at all: by the name of the host
  // that the browser looked up, and by the origin of the page that asks. The text says why not.
  std::optional<std::string> refusal(const Request& request) const;

  // A session for a good token, which is good no longer. Of more than kMostSessions the oldest one
  // ends.
  std::optional<std::string> exchange(std::string_view token);
  bool hasSession(const Request& request) const;

 private:
  int port_ = 0;
  mutable std::mutex mutex_;
  std::string token_;  // by the mutex
  std::deque<std::string> sessions_;
};

}  // namespace mbcas::ui
