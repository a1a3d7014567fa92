// Stands between a client and a server and counts what passes, unchanged: TLS stays theirs.
#pragma once

#include <cstdint>
#include <memory>

namespace mbcas::test {

class TcpTap {
 public:
  // To 127.0.0.1:`upstream_port`. Throws std::runtime_error if it cannot listen.
  explicit TcpTap(int upstream_port);
  ~TcpTap();
  TcpTap(const TcpTap&) = delete;
  TcpTap& operator=(const TcpTap&) = delete;

  int port() const;
  struct Counts {
    std::uint64_t connections = 0;
    std::uint64_t sent = 0;  // bytes, to the server
    std::uint64_t received = 0;
  };
  Counts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::test
