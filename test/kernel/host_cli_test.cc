// `mbcas run`, `restore --host` and `demo` as their users run them, on the real kernel.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "mbcas/kernel/cgroup.h"
#include "mbcas/kernel/fake_tree.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"
#include "test/support/command.h"

namespace mbcas::test {
namespace {

using namespace std::chrono_literals;
using namespace literals;

// Where it was built, or taken along into a virtual machine; empty: not there.
std::string binary() {
  for (const char* const path : {MBCAS_BINARY, "/mbcas"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "";
}

std::string contentOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class HostCommands : public testing::Test {
 protected:
  void SetUp() override {
    if (binary().empty()) GTEST_SKIP() << "no mbcas here";
    auto made = Scratch::make();
    if (!made) GTEST_SKIP() << made.error().message();
    scratch = *std::move(made);
    own = scratch->mounts().cpu.substr(host().cpu.size());
  }
  static kernel::Mounts host() { return *kernel::detectMounts("/sys/fs/cgroup"); }
  std::optional<Millicores> limitOf(const std::string& path) {
    auto cgroup = kernel::Cgroup::open(scratch->mounts(), path);
    const auto limit = cgroup->limit();
    return limit ? limit->millicores() : std::nullopt;
  }
  // In the background, its output to `out`.
  pid_t start(std::vector<std::string> words) {
    words.insert(words.begin(), binary());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(126);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  template <class Done>
  bool eventually(Done done) {
    for (int i = 0; i < 2400; ++i) {
      if (done()) return true;
      std::this_thread::sleep_for(100ms);
    }
    return false;
  }

  std::unique_ptr<Scratch> scratch;
  std::string own;  // path of the scratch cgroup below the host's hierarchies
  kernel::FakeTree files;
  std::string out = files.root() + "/out";
  std::string state = files.root() + "/state";
  std::string config = files.root() + "/pods.yaml";
};

TEST_F(HostCommands, RunFollowsTheLoadAndRestorePutsBackAfterSigkill) {
  scratch->add("/web");
  scratch->setLimit("/web", 100_m);
  std::ofstream(config) << "pods:\n  - {name: web, cgroup: " << own
                        << "/web}\n  - {name: job, command: [sh, -c, 'while :; do :; done'], "
                           "limit: 50m}\n";
  const Burner burner({.threads = 1, .on = 30ms, .period = 100ms}, scratch->directories("/web"));
  const pid_t pid = start({"run", config, "--state", state, "-o", "json"});
  EXPECT_TRUE(eventually([&] { return *limitOf("/web") >= 300_m; })) << contentOf(out);
  EXPECT_TRUE(eventually([&] {
    return contentOf(out).find(R"("pod":"web","cgroup":)") != std::string::npos;
  })) << contentOf(out);
  EXPECT_NE(contentOf(out).find("it begins with its declared limit"), std::string::npos);
  EXPECT_EQ(contentOf(out).find("cannot be read"), std::string::npos) << "no false alarm";
  const std::string made = host().cpu + "/mbcas-" + std::to_string(pid);
  EXPECT_EQ(::access((made + "/job").c_str(), F_OK), 0);

  // While it runs, nobody else may.
  const Outcome second = runCommand({binary(), "restore", "--host", "--state", state});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("another mbcas is running"), std::string::npos) << second.err;

  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_GE(*limitOf("/web"), 300_m);
  const Outcome restored = runCommand({binary(), "restore", "--host", "--state", state});
  EXPECT_EQ(restored.exit_code, 0) << restored.err << restored.out;
  EXPECT_EQ(limitOf("/web"), 100_m);
  EXPECT_NE(::access(made.c_str(), F_OK), 0);
}

TEST_F(HostCommands, RunPutsBackOnSigterm) {
  scratch->add("/web");
  scratch->setLimit("/web", 100_m);
  std::ofstream(config) << "pods:\n  - {name: web, cgroup: " << own << "/web}\n";
  const Burner burner({.threads = 1, .on = 30ms, .period = 100ms}, scratch->directories("/web"));
  const pid_t pid = start({"run", config, "--state", state});
  EXPECT_TRUE(eventually([&] { return *limitOf("/web") > 100_m; }));
  // Meanwhile it can be looked at.
  const std::string socket = state + ".sock";
  const Outcome top = runCommand({binary(), "top", "--host", "--socket", socket, "-o", "json"});
  EXPECT_EQ(top.exit_code, 0) << top.err;
  EXPECT_NE(top.out.find(R"("pod":"web")"), std::string::npos) << top.out;
  const Outcome explained = runCommand({binary(), "explain", "--host", "web", "--socket", socket});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_NE(explained.out.find("What it needs"), std::string::npos) << explained.out;
  EXPECT_EQ(runCommand({binary(), "explain", "--host", "x", "--socket", socket}).exit_code, 1);
  const Outcome report =
      runCommand({binary(), "report", "--host", "--socket", socket, "--for", "3s", "-o", "json"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_NE(report.out.find(R"("workload":"web")"), std::string::npos) << report.out;
  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(limitOf("/web"), 100_m);
  EXPECT_NE(contentOf(out).find(" web: 100m -> "), std::string::npos) << contentOf(out);
  EXPECT_NE(::access(socket.c_str(), F_OK), 0);
}

TEST_F(HostCommands, DemoLeavesNothingBehind) {
  const std::string report = files.root() + "/report.html";
  const Outcome outcome = runCommand(
      {binary(), "demo", "--seconds", "10", "--json", "--report", report, "--state", state});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(R"({"on":"kernel","phases":[{"name":"static limits")"))
      << outcome.out;
  EXPECT_NE(contentOf(report).find("</html>"), std::string::npos);
  EXPECT_EQ(contentOf(state), "");
}

TEST(HostCommandsWithoutCgroups, DemoRunsOnTheModel) {
  const Outcome outcome = runCommand({binary(), "demo", "--model", "--plain", "--report", ""});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("On a model of the kernel with ")) << outcome.out;
  EXPECT_NE(outcome.out.find("Nash welfare"), std::string::npos);
}

TEST(HostCommandsWithoutCgroups, RunRefusesWithOneLine) {
  const Outcome missing = runCommand({binary(), "run", "/nowhere/pods.yaml"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.err, "mbcas run: /nowhere/pods.yaml: cannot be read\n");
  kernel::FakeTree files;
  std::ofstream(files.root() + "/a.yaml") << "pods:\n - {name: a}\n";
  const Outcome bad = runCommand({binary(), "run", files.root() + "/a.yaml"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("a.yaml: line 2: pods[0]: either cgroup or command is expected\n"),
            std::string::npos)
      << bad.err;
}

}  // namespace
}  // namespace mbcas::test
