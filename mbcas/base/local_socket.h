// A Unix socket on which a process shows its state: who connects is sent one text and the connection
// is closed. For `mbcas top` and `mbcas explain` on the same machine.
//
//   LocalSocket socket = *LocalSocket::listen("/run/mbcas/agent.sock");
//   poll for socket.fd(), then: socket.serve([&] { return stateJson(view); });
//   elsewhere: Result<std::string> text = readLocalSocket("/run/mbcas/agent.sock");
#pragma once

#include <functional>
#include <string>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas {

class LocalSocket {
 public:
  // Replaces a socket that a dead process left behind; fails if a living one listens there. Mode
  // 0660.
  static Result<LocalSocket> listen(const std::string& path);
  LocalSocket(LocalSocket&& other) noexcept;
  LocalSocket& operator=(LocalSocket&& other) noexcept;
  ~LocalSocket();  // removes the path

  int fd() const { return fd_; }  // readable when somebody connects
  // Accepts whoever waits, at most a few, and sends each the text. Never blocks: who does not take
  // it at once is cut off.
  void serve(const std::function<std::string()>& text);

 private:
  LocalSocket(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

Result<std::string> readLocalSocket(const std::string& path, Nanos timeout,
                                    std::size_t longest = 64 << 20);

}  // namespace mbcas
