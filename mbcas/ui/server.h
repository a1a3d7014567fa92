// Serves the page of `mbcas ui` on this machine: its files, a stream of frames, and answers to what
// it asks.
//
//   Server server;
//   server.answer("/api/explain", [](std::string body) -> Result<std::string> { ... });
//   Result<void> started = server.start(0);
//   show server.address() to the user, who opens it in a browser
//   server.describe(json), server.setStatus(json), server.publish(frame)
//
// It listens on 127.0.0.1 alone, and access.h says who is answered. Nothing that a page can ask for
// changes anything outside of the page. One thread serves all connections and waits for none;
// requests, connections and what is kept for slow readers are bounded.
//
// The stream (GET /api/events) is text/event-stream. First comes the event `source`, what the
// frames are of; `status` tells whether more of them come; `cluster` is a picture of which only the
// newest is sent, unless it is one of a recording; each `frame`, and each picture of a recording,
// has the next number as its id, and a page that comes back names the last one it has in
// Last-Event-ID.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mbcas/base/result.h"

namespace mbcas::ui {

class Server {
 public:
  static constexpr std::size_t kMostConnections = 32;
  static constexpr std::size_t kMostStreams = 8;

  Server();
  ~Server();  // stops

  // Before start(): POST requests for this path. An error is shown with status 422. It runs on the
  // thread that serves, so it has to be short.
  using Answer = std::function<Result<std::string>(std::string body)>;
  void answer(std::string path, Answer answer);

  // Port 0 takes any free one.
  Result<void> start(int port);
  void stop();

  int port() const;
  std::string address() const;  // with a token that has not been used: another one after each use

  // JSON texts without line breaks. Any thread.
  void describe(std::string source);
  void setStatus(std::string status);
  void setCluster(std::string picture);
  void publish(const std::string& frame);
  // A picture that is kept as frames are, because it is one of a recording.
  void publishPicture(const std::string& picture);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::ui
