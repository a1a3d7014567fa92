// A Unix socket on which a process shows its state: who connects is sent one text and the
// connection is closed. For `mbcas top` and `mbcas explain` on the same machine.
//
//   LocalSocket socket = *LocalSocket::listen("/run/mbcas/agent.sock");
//   poll for socket.fd(), then: socket.serve([&] { return stateJson(view); });
//   elsewhere: Result<std::string> text = readLocalSocket("/run/mbcas/agent.sock", timeout);
#pragma once

#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas {

// One thread.
class LocalSocket {
 public:
  static constexpr std::size_t kMostReaders = 8;

  // Replaces a socket that a dead process left behind; fails if a living one listens there, or if
  // something else has that name. Mode 0660.
  static Result<LocalSocket> listen(const std::string& path);
  LocalSocket(LocalSocket&& other) noexcept;
  LocalSocket& operator=(LocalSocket&& other) noexcept;
  ~LocalSocket();  // cuts off who still reads, removes the path if it is still ours

  int fd() const { return events_; }  // readable when serve() has something to do
  // Takes in who waits and goes on with who has not taken all of its text yet. Never blocks. `text`
  // is called at most once, and not at all if nobody is new. Of more than kMostReaders the one that
  // has been reading longest is cut off.
  void serve(const std::function<std::string()>& text);
  std::size_t readers() const { return readers_.size(); }

 private:
  struct Reader {
    int fd;
    std::shared_ptr<const std::string> text;
    std::size_t sent = 0;
  };
  LocalSocket() = default;
  void accept(const std::function<std::string()>& text);
  bool send(Reader& reader);  // false: it has all, or is gone
  void close(std::list<Reader>::iterator reader);

  int events_ = -1;  // an epoll of the listening socket and of the readers
  int listening_ = -1;
  std::string path_;
  ino_t inode_ = 0;
  std::list<Reader> readers_;  // oldest first
};

// Connects and reads to the end. The error says what to do where no process listens.
Result<std::string> readLocalSocket(const std::string& path, Nanos timeout,
                                    std::size_t longest = 64 << 20);

}  // namespace mbcas
