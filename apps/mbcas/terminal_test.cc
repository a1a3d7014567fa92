// `mbcas top`, `ui` and `demo` in a real terminal: what is on the screen, and what keys do.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "mbcas/base/local_socket.h"
#include "test/support/golden.h"
#include "test/support/recorded_server.h"
#include "test/support/terminal.h"

namespace mbcas::test {
namespace {

// Shows a state that was written down, as `mbcas run` would.
class RecordedState {
 public:
  RecordedState() {
    std::string pattern = std::filesystem::temp_directory_path() / "mbcas-state-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    Result<LocalSocket> socket = LocalSocket::listen(path());
    EXPECT_TRUE(socket) << socket.error().message();
    if (!socket) return;
    server_ = std::jthread([this, socket = std::make_shared<LocalSocket>(*std::move(socket))](
                               const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        socket->serve([this] {
          ++asked_;
          return fileText("test/golden/cli/state.json");
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  }
  ~RecordedState() {
    server_ = {};
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/state.sock"; }
  int asked() const { return asked_; }

 private:
  std::string folder_;
  std::atomic<int> asked_ = 0;
  std::jthread server_;
};

std::vector<std::string> top(const RecordedState& state) {
  return {MBCAS_BINARY, "top", "--host", "--socket", state.path(), "--interval", "50ms"};
}

const std::vector<std::string> kColours = {"NO_COLOR=", "TERM=xterm-256color"};
const std::vector<std::string> kNoColours = {"NO_COLOR=1", "TERM=xterm-256color"};

// The terminal is as it was before. (A picture that was under way while the window became smaller
// may have been too wide.)
void expectLeft(Terminal& terminal, int exit_code = 0, bool always_fitted = true) {
  EXPECT_EQ(terminal.wait(), exit_code);
  EXPECT_FALSE(terminal.screen().alternate());
  EXPECT_TRUE(terminal.screen().cursorVisible());
  if (always_fitted) {
    EXPECT_FALSE(terminal.screen().overflowed());
  }
  EXPECT_EQ(terminal.screen().unknown(), "");
}

TEST(TopInATerminal, ShowsSortsAndQuits) {
  const RecordedState state;
  Terminal terminal(top(state), {.columns = 80, .rows = 24}, kNoColours);
  ASSERT_TRUE(terminal.untilShows("web-1")) << terminal.screen().text();
  EXPECT_TRUE(terminal.screen().alternate());
  EXPECT_FALSE(terminal.screen().cursorVisible());
  expectGolden("test/golden/cli/terminal-top-80x24.txt", terminal.seen());
  EXPECT_FALSE(terminal.screen().coloured());

  terminal.type("l");
  ASSERT_TRUE(terminal.untilShows("LIMIT▼")) << terminal.screen().text();
  expectGolden("test/golden/cli/terminal-top-by-limit.txt", terminal.seen());
  terminal.type("\x1b[C");  // the column to the right
  ASSERT_TRUE(terminal.untilShows("APPLIED▼"));
  terminal.type("i");
  ASSERT_TRUE(terminal.untilShows("APPLIED▲"));

  // It goes on looking.
  const int before = state.asked();
  ASSERT_TRUE(terminal.until([&](const std::string&) { return state.asked() > before + 2; }));
  terminal.type("q");
  expectLeft(terminal);
}

TEST(TopInATerminal, FollowsTheSizeOfItsWindow) {
  const RecordedState state;
  Terminal terminal(top(state), {.columns = 80, .rows = 24}, kNoColours);
  ASSERT_TRUE(terminal.untilShows("web-1"));
  terminal.resize({.columns = 120, .rows = 30});
  terminal.type("w");
  const auto shows_all = [](const std::string& screen) {
    return screen.find("DECLARED") != std::string::npos &&
           std::count(screen.begin(), screen.end(), '\n') == 30;
  };
  ASSERT_TRUE(terminal.until(shows_all)) << terminal.screen().text();
  expectGolden("test/golden/cli/terminal-top-120x30.txt", terminal.seen());
  terminal.resize({.columns = 40, .rows = 8});
  const auto is_small = [](const std::string& screen) {
    return std::count(screen.begin(), screen.end(), '\n') == 8 &&
           screen.find("of 4") != std::string::npos;
  };
  ASSERT_TRUE(terminal.until(is_small)) << terminal.screen().text();
  expectGolden("test/golden/cli/terminal-top-40x8.txt", terminal.seen());
  terminal.type("\x03");  // Ctrl-C
  expectLeft(terminal, 0, false);
}

TEST(TopInATerminal, ListsItsKeysFiltersAndExplains) {
  const RecordedState state;
  Terminal terminal(top(state), {.columns = 80, .rows = 24}, kNoColours);
  ASSERT_TRUE(terminal.untilShows("Enter explain")) << terminal.screen().text();
  terminal.type("?");
  ASSERT_TRUE(terminal.untilShows("Sort by: p pod")) << terminal.screen().text();
  terminal.type("q");
  ASSERT_TRUE(terminal.untilShows("Enter explain")) << "it only led back";

  terminal.type("/web");
  ASSERT_TRUE(terminal.untilShows("/web_")) << terminal.screen().text();
  terminal.type("\r");
  ASSERT_TRUE(terminal.until([](const std::string& screen) {
    return screen.find("1 with \"web\"") != std::string::npos &&
           screen.find("batch-1") == std::string::npos;
  })) << terminal.screen().text();

  terminal.type("\r");
  ASSERT_TRUE(terminal.untilShows("What the kernel says")) << terminal.screen().text();
  EXPECT_NE(terminal.seen().find("shop/web-1 on node-1"), std::string::npos) << terminal.seen();
  terminal.type("\x1b[6~");  // page down
  terminal.type("\x1b[F");   // end
  ASSERT_TRUE(terminal.untilShows("For it to get more")) << terminal.screen().text();
  terminal.type("q");
  ASSERT_TRUE(terminal.untilShows("1 with \"web\""));
  terminal.type("q");
  expectLeft(terminal);
}

TEST(TopInATerminal, FitsNarrowOnes) {
  for (const std::size_t columns : {60U, 80U}) {
    const RecordedState state;
    Terminal terminal(top(state), {.columns = columns, .rows = 24}, kNoColours);
    ASSERT_TRUE(terminal.untilShows("Enter explain")) << terminal.screen().text();
    for (const char* text : {"POD", "NEED", "LIMIT", "MS/S", "web-1", "q quit", "? help"}) {
      EXPECT_NE(terminal.seen().find(text), std::string::npos) << terminal.seen();
    }
    terminal.type("\r");
    ASSERT_TRUE(terminal.untilShows("What the kernel says")) << terminal.screen().text();
    terminal.type("q");
    ASSERT_TRUE(terminal.untilShows("Enter explain"));
    terminal.type("q");
    expectLeft(terminal);  // nothing was ever too wide
  }
}

// In a cluster of more nodes than are followed anyway.
TEST(TopInATerminal, AsksOnlyTheAgentsOfNodesOnTheScreen) {
  RecordedServer server("test/golden/cli/cluster.json");
  const nlohmann::json pods = nlohmann::json::parse(server.content())["objects"]["/api/v1 pods"];
  nlohmann::json many = nlohmann::json::array();
  for (int i = 10; i < 40; ++i) {
    for (nlohmann::json pod : pods) {
      const std::string name = pod["metadata"]["name"];
      if (name != "web-1" && name != "mbcas-agent-x7k2p") continue;
      pod["metadata"]["name"] = (name == "web-1" ? "web-" : "agent-") + std::to_string(i);
      pod["metadata"]["uid"] = pod["metadata"]["name"];
      pod["spec"]["nodeName"] = "node-" + std::to_string(i);
      many.push_back(std::move(pod));
    }
  }
  server.change(nlohmann::json{{"objects", {{"/api/v1 pods", many}}}}.dump());
  const auto asked = [&] {
    static const std::regex kExec("/pods/agent-([0-9]+)/exec");
    std::set<std::string> nodes;
    for (const std::string& request : server.requests()) {
      std::smatch found;
      if (std::regex_search(request, found, kExec)) nodes.insert(found[1].str());
    }
    return nodes;
  };
  Terminal terminal({MBCAS_BINARY, "top", "--interval", "50ms", "--sort", "pod", "--kubeconfig",
                     server.kubeconfig()},
                    {.columns = 80, .rows = 12}, kNoColours);
  ASSERT_TRUE(terminal.until([&](const std::string&) { return asked().size() >= 3; }))
      << terminal.screen().text();
  for (const std::string& node : asked()) {
    EXPECT_NE(terminal.seen().find("web-" + node), std::string::npos) << terminal.seen();
  }
  EXPECT_LT(asked().size(), 12u);
  terminal.type("\x1b[F");  // end
  ASSERT_TRUE(terminal.until([&](const std::string&) { return asked().contains("39"); }))
      << terminal.screen().text();
  EXPECT_LT(asked().size(), 24u) << "those between were never on the screen";
  terminal.type("q");
  expectLeft(terminal);
}

TEST(HelpInATerminal, FitsNarrowOnes) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"top"}, {"simulate"}, {"restore"}}) {
    std::vector<std::string> words = {MBCAS_BINARY};
    words.insert(words.end(), command.begin(), command.end());
    words.emplace_back("--help");
    Terminal terminal(words, {.columns = 60, .rows = 200}, kNoColours);
    EXPECT_EQ(terminal.wait(), 0);
    // All but examples, which are lines to be copied.
    std::istringstream lines(terminal.screen().text());
    bool examples = false;
    for (std::string line; std::getline(lines, line);) {
      if (line == "Examples:") examples = true;
      if (!examples) {
        EXPECT_LE(line.size(), 60u) << line;
      }
    }
    EXPECT_TRUE(examples) << terminal.screen().text();
  }
}

TEST(HelpInATerminal, TopicsFitNarrowOnes) {
  for (const char* topic :
       {"quickstart", "columns", "modes", "restoring", "annotations", "exit-codes"}) {
    std::string wide;
    for (const std::size_t columns : {110U, 80U, 64U}) {
      Terminal terminal({MBCAS_BINARY, "help", topic}, {.columns = columns, .rows = 200},
                        kNoColours);
      EXPECT_EQ(terminal.wait(), 0);
      const std::string shown = terminal.screen().text();
      EXPECT_FALSE(terminal.screen().overflowed()) << topic << " at " << columns << ":\n" << shown;
      // The same words at every width.
      std::string words;
      std::istringstream text(shown);
      for (std::string word; text >> word;) words += word + " ";
      if (wide.empty()) wide = words;
      EXPECT_EQ(words, wide) << topic << " at " << columns;
    }
  }
}

TEST(TopInATerminal, ColoursOnlyWhereTheyAreWanted) {
  const RecordedState state;
  Terminal terminal(top(state), {}, kColours);
  ASSERT_TRUE(terminal.untilShows("web-1"));
  EXPECT_TRUE(terminal.screen().coloured());
  terminal.type("q");
  expectLeft(terminal);
}

TEST(TopInATerminal, OnceMeansOnce) {
  const RecordedState state;
  std::vector<std::string> words = top(state);
  words.emplace_back("--once");
  Terminal terminal(words, {.columns = 200, .rows = 24}, kNoColours);
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_FALSE(terminal.screen().alternate());
  expectGolden("test/golden/cli/terminal-top-once.txt", terminal.screen().text());
}

// Stands in for the system's way to open an address.
class FakeBrowser {
 public:
  FakeBrowser() {
    std::string pattern = std::filesystem::temp_directory_path() / "mbcas-browser-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    const std::string program = folder_ + "/xdg-open";
    std::ofstream(program) << "#!/bin/sh\necho \"$1\" > " << folder_ << "/begun\n"
                           << "mv " << folder_ << "/begun " << folder_ << "/opened\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  ~FakeBrowser() { std::filesystem::remove_all(folder_); }
  FakeBrowser(const FakeBrowser&) = delete;
  FakeBrowser& operator=(const FakeBrowser&) = delete;

  std::string path() const { return "PATH=" + folder_ + ":/usr/bin:/bin"; }
  const std::string& folder() const { return folder_; }
  // The address with a line break; empty: none yet.
  std::string opened() const {
    return std::filesystem::exists(folder_ + "/opened") ? fileText(folder_ + "/opened") : "";
  }

 private:
  std::string folder_;
};

TEST(UiInATerminal, OpensTheBrowserAndOnlyReads) {
  static const std::regex kAddress("http://127\\.0\\.0\\.1:[0-9]+/#[0-9a-f]{64}");
  const RecordedServer server("test/golden/cli/cluster.json");
  const FakeBrowser browser;
  for (const bool opens : {true, false}) {
    std::vector<std::string> words = {MBCAS_BINARY, "ui", "--kubeconfig", server.kubeconfig()};
    if (!opens) words.emplace_back("--no-open");
    std::filesystem::remove(browser.folder() + "/opened");
    Terminal terminal(words, {.columns = 160, .rows = 24},
                      {browser.path(), "DISPLAY=:0", "NO_COLOR=1"});
    ASSERT_TRUE(terminal.untilShows("Ctrl-C ends the page.")) << terminal.screen().text();
    if (opens) {
      ASSERT_TRUE(terminal.until([&](const std::string&) { return !browser.opened().empty(); }));
    }
    const std::string shown = terminal.seen();
    std::smatch printed;
    ASSERT_TRUE(std::regex_search(shown, printed, kAddress)) << shown;
    EXPECT_EQ(browser.opened(), opens ? printed.str() + "\n" : "");
    EXPECT_NE(shown.find(opens ? "Opening http" : "Open in a browser on this machine: "),
              std::string::npos);
    terminal.type("q");
    EXPECT_EQ(terminal.wait(), 0);
  }
  for (const std::string& request : server.requests()) {
    EXPECT_TRUE(request.starts_with("GET ")) << request;
  }
}

TEST(DemoInATerminal, PlaysToItsEnd) {
  Terminal terminal(
      {MBCAS_BINARY, "demo", "--model", "--cpus", "2", "--seconds", "12", "--report", ""},
      {.columns = 80, .rows = 24}, kNoColours);
  ASSERT_TRUE(terminal.untilShows("3 of 12 s")) << terminal.screen().text();
  expectGolden("test/golden/cli/terminal-demo-static.txt", terminal.seen());
  ASSERT_TRUE(terminal.untilShows(" 9 of 12 s")) << terminal.screen().text();
  expectGolden("test/golden/cli/terminal-demo-market.txt", terminal.seen());
  ASSERT_TRUE(terminal.untilShows("12 of 12 s")) << terminal.screen().text();
  expectGolden("test/golden/cli/terminal-demo-hog.txt", terminal.seen());
  expectLeft(terminal);
  EXPECT_FALSE(terminal.screen().coloured());
  expectGolden("test/golden/cli/terminal-demo-end.txt", terminal.screen().text());
}

TEST(DemoInATerminal, OnTheModelSaysItsSpeedAlsoWhereItIsNarrow) {
  for (const std::size_t columns : {60U, 80U}) {
    Terminal terminal(
        {MBCAS_BINARY, "demo", "--model", "--cpus", "2", "--duration", "10m", "--report", ""},
        {.columns = columns, .rows = 24}, kNoColours);
    ASSERT_TRUE(terminal.untilShows("10x speed")) << terminal.screen().text();
    ASSERT_TRUE(terminal.untilShows("2 of 600 s")) << terminal.screen().text();
    for (const char* text : {"steady", "bursty", "greedy", "service"}) {
      EXPECT_NE(terminal.seen().find(text), std::string::npos) << terminal.seen();
    }
    terminal.type("q");
    expectLeft(terminal, 1);
  }
}

TEST(DemoInATerminal, CanBeLeftAndGrows) {
  Terminal terminal(
      {MBCAS_BINARY, "demo", "--model", "--cpus", "2", "--seconds", "600", "--report", ""},
      {.columns = 80, .rows = 24}, kColours);
  ASSERT_TRUE(terminal.untilShows("2 of 600 s")) << terminal.screen().text();
  EXPECT_TRUE(terminal.screen().coloured());
  terminal.resize({.columns = 150, .rows = 40});
  ASSERT_TRUE(terminal.until([](const std::string& screen) {
    // The subtitle stands at the right end of a line of the new width.
    return screen.find("q: quit") > 130 && screen.find("q: quit") < 150;
  })) << terminal.screen().text();
  terminal.type("q");
  expectLeft(terminal, 1);
}

}  // namespace
}  // namespace mbcas::test
