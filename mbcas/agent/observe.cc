#include "mbcas/agent/observe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "mbcas/base/local_socket.h"

namespace mbcas::agent {
namespace {

constexpr Nanos kPatience = std::chrono::seconds(5);
constexpr std::size_t kLongestState = 8 << 20;

}  // namespace

Result<ObserverPlace> ObserverPlace::take(const std::string& socket) {
  for (int i = 0; i < kMost; ++i) {
    const std::string path = fmt::format("{}.observer-{}", socket, i);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return failure(path + ": cannot be opened");
    // Given back by the kernel, however the process ends.
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return ObserverPlace(fd);
    ::close(fd);
  }
  return failure(fmt::format("{} others observe this agent, which is as many as may", kMost));
}

ObserverPlace::ObserverPlace(ObserverPlace&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ObserverPlace::~ObserverPlace() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> observe(const ObserveOptions& options, const Clock& clock,
                     const std::function<bool(std::string_view line)>& write,
                     const std::function<bool(Nanos)>& pause) {
  const MonotonicTime end = clock.monotonic() + options.at_most;
  std::string last;
  for (;;) {
    Result<std::string> state = readLocalSocket(options.socket, kPatience, kLongestState);
    if (!state) return failure(std::move(state).error());
    if (state->empty()) return failure(options.socket + ": the agent shows nothing");
    // A line of its own, whatever process answers there.
    std::ranges::replace(*state, '\n', ' ');
    *state += '\n';
    if (*state != last && !write(*state)) return {};
    last = *std::move(state);
    const Nanos left = end - clock.monotonic();
    if (left <= Nanos(0) || !pause(std::min(options.interval, left))) return {};
  }
}

bool writeToReader(int fd, std::string_view text, Nanos patience) {
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  while (!text.empty()) {
    pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&writable, 1, static_cast<int>(wait));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (writable.revents & POLLOUT) == 0) return false;
    // A pipe that is writable takes so much without blocking.
    const ssize_t written = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace mbcas::agent
