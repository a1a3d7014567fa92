#include "mbcas/agent/observe.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "mbcas/base/local_socket.h"

namespace mbcas::agent {
namespace {

using namespace std::chrono_literals;

class ObserveTest : public testing::Test {
 protected:
  ObserveTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "mbcas-observe-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    socket_ = directory_ + "/agent.sock";
  }
  ~ObserveTest() override { std::filesystem::remove_all(directory_); }

  // An agent that shows these states, one after the other, the last one for ever.
  std::jthread agent(std::vector<std::string> states) {
    Result<LocalSocket> listening = LocalSocket::listen(socket_);
    EXPECT_TRUE(listening);
    return std::jthread([socket = *std::move(listening),
                         states = std::move(states)](const std::stop_token& stop) mutable {
      std::size_t next = 0;
      while (!stop.stop_requested()) {
        pollfd readable{.fd = socket.fd(), .events = POLLIN, .revents = 0};
        ::poll(&readable, 1, 5);
        socket.serve([&] { return states[std::min(next++, states.size() - 1)]; });
      }
    });
  }

  Result<void> observe(ObserveOptions options, std::size_t enough = 100) {
    options.socket = socket_;
    return agent::observe(
        options, clock_,
        [&](std::string_view line) {
          lines_.emplace_back(line);
          return lines_.size() < enough;
        },
        [&](Nanos time) {
          clock_.advance(time);
          pauses_.push_back(time);
          return true;
        });
  }

  std::string directory_;
  std::string socket_;
  SimulatedClock clock_;
  std::vector<std::string> lines_;
  std::vector<Nanos> pauses_;
};

using Lines = std::vector<std::string>;

TEST_F(ObserveTest, EachStateIsALineOnce) {
  const std::jthread running = agent({"{1}", "{1}", "{2}", "{\n3}"});
  ASSERT_TRUE(observe({.interval = 2s, .at_most = 9s}));
  EXPECT_EQ(lines_, (Lines{"{1}\n", "{2}\n", "{ 3}\n"}));
  EXPECT_EQ(pauses_, (std::vector<Nanos>{2s, 2s, 2s, 2s, 1s})) << "and a last look";
}

TEST_F(ObserveTest, OneLook) {
  const std::jthread running = agent({"{1}", "{2}"});
  ASSERT_TRUE(observe({.at_most = 0s}));
  EXPECT_EQ(lines_, (Lines{"{1}\n"}));
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(ObserveTest, EndsWhenTheReaderHasGone) {
  const std::jthread running = agent({"{1}", "{2}", "{3}"});
  ASSERT_TRUE(observe({}, 2));
  EXPECT_EQ(lines_, (Lines{"{1}\n", "{2}\n"}));
}

TEST_F(ObserveTest, WithoutAnAgent) {
  const Result<void> ended = observe({});
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().message().find("no process listens there"), std::string::npos)
      << ended.error().message();
}

TEST_F(ObserveTest, AnAgentThatEnds) {
  std::jthread running = agent({"{1}"});
  const Result<void> ended = agent::observe(
      {.socket = socket_}, clock_, [](std::string_view) { return true; },
      [&](Nanos) {
        running.request_stop();
        running.join();
        std::filesystem::remove(socket_);
        return true;
      });
  EXPECT_FALSE(ended);
}

TEST_F(ObserveTest, FewMayObserve) {
  std::vector<ObserverPlace> places;
  for (int i = 0; i < ObserverPlace::kMost; ++i) {
    Result<ObserverPlace> place = ObserverPlace::take(socket_);
    ASSERT_TRUE(place) << place.error().message();
    places.push_back(*std::move(place));
  }
  const Result<ObserverPlace> refused = ObserverPlace::take(socket_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "4 others observe this agent, which is as many as may");
  places.pop_back();
  EXPECT_TRUE(ObserverPlace::take(socket_));
  EXPECT_FALSE(ObserverPlace::take(directory_ + "/missing/agent.sock"));
}

// A pipe with a reader, or without one.
struct Pipe {
  Pipe() {
    ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): the write fails then
    EXPECT_EQ(::pipe(ends), 0);
  }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int ends[2] = {-1, -1};
};

TEST(WriteToReader, WritesMoreThanAPipeHolds) {
  const Pipe pipe;
  const std::string text(std::size_t{1} << 20, 'x');
  std::string read;
  std::thread reader([&] {
    std::string piece(1000, '\0');
    while (read.size() < text.size()) {
      const ssize_t size = ::read(pipe.ends[0], piece.data(), piece.size());
      if (size <= 0) return;
      read.append(piece, 0, static_cast<std::size_t>(size));
    }
  });
  EXPECT_TRUE(writeToReader(pipe.ends[1], text, 30s));
  reader.join();
  EXPECT_EQ(read, text);
}

TEST(WriteToReader, GivesUpWhenNobodyReads) {
  const Pipe pipe;
  EXPECT_TRUE(writeToReader(pipe.ends[1], "short", 30s)) << "the pipe holds it";
  EXPECT_FALSE(writeToReader(pipe.ends[1], std::string(std::size_t{1} << 20, 'x'), 50ms));
}

TEST(WriteToReader, SeesThatTheReaderHasGone) {
  Pipe pipe;
  ::close(std::exchange(pipe.ends[0], -1));
  EXPECT_FALSE(writeToReader(pipe.ends[1], "text", 30s));
}

}  // namespace
}  // namespace mbcas::agent
