#include "mbcas/base/local_socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace mbcas {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kPatience = 60s;

class LocalSocketTest : public testing::Test {
 protected:
  LocalSocketTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "mbcas-socket-XXXXXX";
    directory = ::mkdtemp(pattern.data());
    path = directory + "/agent.sock";
  }
  ~LocalSocketTest() override { std::filesystem::remove_all(directory); }

  int connect() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  static bool waits(const LocalSocket& socket, std::chrono::milliseconds patience = 0ms) {
    pollfd readable{.fd = socket.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&readable, 1, static_cast<int>(patience.count())) == 1;
  }
  // Serves until the function, on another thread, has returned.
  template <class F>
  static void serveDuring(LocalSocket& socket, const std::string& text, F run) {
    std::atomic<bool> over = false;
    std::thread other([&] {
      run();
      over = true;
    });
    while (!over) {
      if (waits(socket, 10ms)) socket.serve([&] { return text; });
    }
    other.join();
  }

  std::string directory;
  std::string path;
};

TEST_F(LocalSocketTest, ATextOfMegabytesArrivesWhole) {
  Result<LocalSocket> socket = LocalSocket::listen(path);
  ASSERT_TRUE(socket) << socket.error().message();
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i) + ' ';
  serveDuring(*socket, text, [&] {
    for (int i = 0; i < 3; ++i) {
      const Result<std::string> got = readLocalSocket(path, kPatience);
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_TRUE(*got == text);
    }
  });
  EXPECT_EQ(socket->readers(), 0U);
}

TEST_F(LocalSocketTest, ManyReadersAtOnceShareOneText) {
  Result<LocalSocket> socket = LocalSocket::listen(path);
  ASSERT_TRUE(socket);
  const std::string text(1'000'000, 'x');
  std::atomic<int> whole = 0;
  serveDuring(*socket, text, [&] {
    std::vector<std::thread> readers;
    for (int i = 0; i < 4; ++i) {
      readers.emplace_back([&] {
        const Result<std::string> got = readLocalSocket(path, kPatience);
        whole += got && *got == text ? 1 : 0;
      });
    }
    for (std::thread& reader : readers) reader.join();
  });
  EXPECT_EQ(whole, 4);
}

TEST_F(LocalSocketTest, WhoDoesNotReadBlocksNobodyAndIsCutOffInTheEnd) {
  Result<LocalSocket> socket = LocalSocket::listen(path);
  ASSERT_TRUE(socket);
  const std::string text(2'000'000, 'x');
  std::vector<int> lazy;
  for (std::size_t i = 0; i < LocalSocket::kMostReaders; ++i) {
    lazy.push_back(connect());
    socket->serve([&] { return text; });
    socket->serve([&] { return text; });
  }
  EXPECT_EQ(socket->readers(), LocalSocket::kMostReaders);
  EXPECT_FALSE(waits(*socket)) << "nothing to do while nobody reads";
  serveDuring(*socket, text, [&] {
    const Result<std::string> got = readLocalSocket(path, kPatience);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_TRUE(*got == text);
  });
  EXPECT_EQ(socket->readers(), LocalSocket::kMostReaders - 1) << "the oldest made room";
  for (const int fd : lazy) ::close(fd);
  ASSERT_TRUE(waits(*socket, 10s)) << "that they are gone is noticed";
  while (waits(*socket)) socket->serve([&] { return text; });
  EXPECT_EQ(socket->readers(), 0U);
}

TEST_F(LocalSocketTest, TheTextIsMadeOnlyForWhoIsNew) {
  Result<LocalSocket> socket = LocalSocket::listen(path);
  ASSERT_TRUE(socket);
  int made = 0;
  const auto text = [&] {
    ++made;
    return std::string("state");
  };
  socket->serve(text);
  EXPECT_EQ(made, 0);
  const int a = connect();
  const int b = connect();
  socket->serve(text);
  EXPECT_EQ(made, 1);
  char buffer[16];
  for (const int fd : {a, b}) {
    EXPECT_EQ(::recv(fd, buffer, sizeof buffer, 0), 5);
    EXPECT_EQ(::recv(fd, buffer, sizeof buffer, 0), 0);
    ::close(fd);
  }
}

TEST_F(LocalSocketTest, ReplacesADeadSocketOnly) {
  {
    Result<LocalSocket> first = LocalSocket::listen(path);
    ASSERT_TRUE(first);
    struct stat made{};
    ASSERT_EQ(::stat(path.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777, 0660U);
    const Result<LocalSocket> second = LocalSocket::listen(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message(), path + ": another process listens there");
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "removed with the object";

  // What a process that was killed leaves: the file, and nobody who listens.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  const Result<std::string> nobody = readLocalSocket(path, 1s);
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().message().find("no process listens"), std::string::npos);
  EXPECT_TRUE(LocalSocket::listen(path));

  std::ofstream(path) << "precious";
  const Result<LocalSocket> file = LocalSocket::listen(path);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message(), path + ": exists already, and is not a socket");
}

TEST_F(LocalSocketTest, DoesNotRemoveASuccessorsSocket) {
  Result<LocalSocket> first = LocalSocket::listen(path);
  ASSERT_TRUE(first);
  std::filesystem::remove(path);
  const Result<LocalSocket> second = LocalSocket::listen(path);
  ASSERT_TRUE(second);
  first = LocalSocket(std::move(*first));
  {
    const LocalSocket ended = std::move(*first);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(LocalSocketTest, ReadersHaveBounds) {
  Result<LocalSocket> socket = LocalSocket::listen(path);
  ASSERT_TRUE(socket);
  const Result<std::string> late = readLocalSocket(path, 20ms);  // nobody serves
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message(), path + ": does not answer in time");
  serveDuring(*socket, std::string(1000, 'x'), [&] {
    const Result<std::string> long_text = readLocalSocket(path, kPatience, 999);
    ASSERT_FALSE(long_text);
    EXPECT_EQ(long_text.error().message(), path + ": sends more than 999 bytes");
  });
  EXPECT_FALSE(readLocalSocket(std::string(200, 'p'), 1s));
}

}  // namespace
}  // namespace mbcas
