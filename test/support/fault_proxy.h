// A proxy that harms connections on purpose. Plain HTTP on loopback to its clients, TLS to a
// kube-apiserver. The plan says for each connection, counted from 0, what happens to it.
//
// It is also a proxy as in proxy-url: a CONNECT opens a tunnel to the kube-apiserver, unharmed.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mbcas::test {

struct Fault {
  enum class Kind {
    kNone,
    kCut,       // after so many bytes of the answer: reset
    kHalfOpen,  // after so many bytes: silence, the connection stays open
    kDelay,     // every piece comes late
    kTruncate,  // after so many bytes: the head of a chunk, and a proper close
    kGarbage,   // after so many bytes: bytes that are no JSON, as a proper chunk, and a close
    kStatus,    // never forwarded: answered with `status`, and Retry-After if that is >= 0
    kRefuse,    // closed at once
  };
  Kind kind = Kind::kNone;
  std::size_t after = 0;
  std::chrono::milliseconds delay{0};
  int status = 503;
  int retry_after = -1;
  // Only answers to requests that contain this in their first line or head; empty: to all. For
  // kHalfOpen, kCut, kTruncate and kGarbage.
  std::string request{};
};

class FaultProxy {
 public:
  // To 127.0.0.1:`upstream_port`. Throws std::runtime_error if it cannot listen.
  explicit FaultProxy(int upstream_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::string url() const;  // http://127.0.0.1:PORT
  // For connections from now on; the count starts again at 0.
  void plan(std::function<Fault(int connection)> plan);
  // Keeps requests back, unforwarded, for as long as `which` says so of their first line
  // ("GET /api/v1/pods?limit=500 HTTP/1.1"). Asked every few milliseconds, on several threads.
  void hold(std::function<bool(std::string_view request_line)> which);
  int held() const;  // requests that are kept back now
  // Resets every connection that is open now.
  void cutAll();
  int connections() const;         // since the plan was set
  std::string lastTunnel() const;  // the host and port of the last CONNECT

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::test
