// `mbcas-agent observe`: what a running agent sees, line by line, for `mbcas top`, `explain` and
// `ui`, which start it in the agent's container by pods/exec. So the agent opens no port, and the
// API server decides who may do that.
//
// It reads the agent's own state socket, which only the agent's container and the node's root can
// reach: the socket is in a volume of the pod, and belongs to the agent's user. It shares the
// container's CPU and memory with the agent, so that few may run at once.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas::agent {

// One of the few places for those who observe an agent, held until it is destroyed.
class ObserverPlace {
 public:
  static constexpr int kMost = 4;
  // Next to the socket. An error that says so if all of them are taken.
  static Result<ObserverPlace> take(const std::string& socket);
  ObserverPlace(ObserverPlace&& other) noexcept;
  ObserverPlace& operator=(ObserverPlace&& other) = delete;
  ~ObserverPlace();

 private:
  explicit ObserverPlace(int fd) : fd_(fd) {}
  int fd_;
};

struct ObserveOptions {
  std::string socket{};
  Nanos interval = std::chrono::seconds(1);  // between two looks
  Nanos at_most = std::chrono::minutes(10);  // then it ends, so that none is forgotten; 0: one look
};

// Writes each state that differs from the one before, as one line of JSON (view.h) with its end.
// Ends well after `at_most`, or when `write` or `pause` returns false: the reader has gone, or
// somebody wants the end. An error if the agent does not show its state.
Result<void> observe(const ObserveOptions& options, const Clock& clock,
                     const std::function<bool(std::string_view line)>& write,
                     const std::function<bool(Nanos)>& pause);

// Writes all of `text` into a pipe, a socket or a file. False if that failed, or if nobody has read
// from it for `patience`: a container runtime keeps the pipe of a program open and stops reading
// when the one who started the program has gone.
bool writeToReader(int fd, std::string_view text, Nanos patience);

}  // namespace mbcas::agent
