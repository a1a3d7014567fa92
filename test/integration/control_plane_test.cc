// The fixture itself: a control plane starts, obeys, lives beside another, and leaves nothing
// behind.
#include "test/support/control_plane.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace mbcas::test {
namespace {

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof buffer, pipe)) {
    outcome.output.append(buffer, count);
  }
  outcome.status = pclose(pipe);
  return outcome;
}

Outcome kubectl(const ControlPlane& plane, const std::string& arguments) {
  return run(plane.kubectl() + " --kubeconfig=" + plane.kubeconfig() + " " + arguments);
}

// A zombie is dead: where the first process does not reap orphans, they stay for ever.
bool isRunning(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  if (!std::getline(file, stat)) return false;
  const auto end = stat.rfind(')');
  return end != std::string::npos && stat[end + 2] != 'Z' && stat[end + 2] != 'X';
}

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 600; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

class ControlPlaneTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = ControlPlane::skipReason()) GTEST_SKIP() << *reason;
  }
};

TEST_F(ControlPlaneTest, ServesAndKeepsItsDataAcrossRestartsOfTheApiserver) {
  const auto plane = ControlPlane::start();
  ASSERT_TRUE(plane) << plane.error();
  const Outcome created = kubectl(**plane, "create namespace shop");
  ASSERT_EQ(created.status, 0) << created.output;

  ASSERT_TRUE((*plane)->killApiserver());
  EXPECT_NE(kubectl(**plane, "get namespace shop --request-timeout=2s").status, 0);
  const auto started = (*plane)->startApiserver();
  ASSERT_TRUE(started) << started.error();

  const Outcome found = kubectl(**plane, "get namespace shop -o name");
  EXPECT_EQ(found.status, 0);
  EXPECT_EQ(found.output, "namespace/shop\n");
}

TEST_F(ControlPlaneTest, AfterCompactionOldVersionsAreGone) {
  const auto plane = ControlPlane::start();
  ASSERT_TRUE(plane) << plane.error();
  const Outcome version =
      kubectl(**plane, "get namespace default -o jsonpath={.metadata.resourceVersion}");
  ASSERT_EQ(version.status, 0) << version.output;
  const std::string listThen = "get --raw '/api/v1/namespaces?resourceVersionMatch=Exact&limit=1" +
                               ("&resourceVersion=" + version.output) + "'";
  const Outcome before = kubectl(**plane, listThen);
  EXPECT_EQ(before.status, 0) << before.output;

  ASSERT_EQ(kubectl(**plane, "create namespace later").status, 0);
  const auto compacted = (*plane)->compact();
  ASSERT_TRUE(compacted) << compacted.error();
  // The apiserver keeps a window of history of its own, which ends with its process.
  ASSERT_TRUE((*plane)->killApiserver());
  ASSERT_TRUE((*plane)->startApiserver());
  const Outcome after = kubectl(**plane, listThen);
  EXPECT_NE(after.status, 0) << after.output;
  EXPECT_NE(after.output.find("too old"), std::string::npos) << after.output;
}

TEST_F(ControlPlaneTest, StopsAndRefusesUnknownCommands) {
  const auto plane = ControlPlane::start();
  ASSERT_TRUE(plane) << plane.error();
  EXPECT_TRUE((*plane)->stopApiserver());
  EXPECT_FALSE(isRunning((*plane)->pids().at("apiserver")));
  EXPECT_TRUE(isRunning((*plane)->pids().at("etcd")));
  const auto refused = (*plane)->command("dance apiserver");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("dance"), std::string::npos) << refused.error();
}

TEST_F(ControlPlaneTest, FurtherUsersHaveTokensAndNoRights) {
  ControlPlane::Options options;
  options.users = {"ann,auditors"};
  const auto plane = ControlPlane::start(options);
  ASSERT_TRUE(plane) << plane.error();
  ASSERT_TRUE((*plane)->userTokens().contains("ann"));
  const std::string asAnn = "--token=" + (*plane)->userTokens().at("ann") +
                            " --server=" + (*plane)->server() +
                            " --certificate-authority=" + (*plane)->caFile();
  const Outcome who =
      run((*plane)->kubectl() + " --kubeconfig=/dev/null " + asAnn + " auth whoami");
  EXPECT_NE(who.output.find("auditors"), std::string::npos) << who.output;
  const Outcome denied =
      run((*plane)->kubectl() + " --kubeconfig=/dev/null " + asAnn + " get namespaces");
  EXPECT_NE(denied.output.find("Forbidden"), std::string::npos) << denied.output;
}

TEST_F(ControlPlaneTest, TwoRunAtOnceAndDoNotSeeEachOther) {
  const auto first = ControlPlane::start();
  const auto second = ControlPlane::start();
  ASSERT_TRUE(first) << first.error();
  ASSERT_TRUE(second) << second.error();
  EXPECT_NE((*first)->server(), (*second)->server());
  ASSERT_EQ(kubectl(**first, "create namespace only-in-first").status, 0);
  EXPECT_EQ(kubectl(**first, "get namespace only-in-first").status, 0);
  EXPECT_NE(kubectl(**second, "get namespace only-in-first").status, 0);
}

TEST_F(ControlPlaneTest, LeavesNothingWhenItEnds) {
  auto plane = ControlPlane::start();
  ASSERT_TRUE(plane) << plane.error();
  const auto pids = (*plane)->pids();
  const std::string dir = (*plane)->dir();
  ASSERT_EQ(pids.size(), 2u);
  for (const auto& [name, pid] : pids) EXPECT_TRUE(isRunning(pid)) << name;
  plane->reset();
  for (const auto& [name, pid] : pids) EXPECT_FALSE(isRunning(pid)) << name;
  EXPECT_FALSE(std::filesystem::exists(dir));
}

// For a forked child: tells what it has started, and never returns.
[[noreturn]] void startAndWaitToBeKilled(int report) noexcept {
  const auto plane = ControlPlane::start();
  std::string message;
  if (plane) {
    message = (*plane)->dir() + " " + std::to_string((*plane)->supervisor());
    for (const auto& [name, pid] : (*plane)->pids()) message += " " + std::to_string(pid);
  }
  message += "\n";
  (void)!write(report, message.data(), message.size());
  while (true) pause();
}

TEST_F(ControlPlaneTest, LeavesNothingWhenTheTestIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t victim = fork();
  ASSERT_GE(victim, 0);
  if (victim == 0) startAndWaitToBeKilled(ends[1]);
  close(ends[1]);
  FILE* file = fdopen(ends[0], "r");
  char dir[1024] = "";
  int pids[3] = {};
  const int fields = fscanf(file, "%1023s %d %d %d", dir, &pids[0], &pids[1], &pids[2]);
  fclose(file);
  kill(victim, SIGKILL);
  waitpid(victim, nullptr, 0);
  ASSERT_EQ(fields, 4) << "the control plane did not start";
  for (const int pid : pids) EXPECT_TRUE(eventually([&] { return !isRunning(pid); })) << pid;
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(dir); })) << dir;
}

TEST_F(ControlPlaneTest, DownRemovesWhatAKilledSupervisorHasLeft) {
  const auto plane = ControlPlane::start();
  ASSERT_TRUE(plane) << plane.error();
  kill((*plane)->supervisor(), SIGKILL);
  for (const auto& [name, pid] : (*plane)->pids()) {
    EXPECT_TRUE(eventually([&] { return !isRunning(pid); })) << name;
  }
  EXPECT_TRUE(std::filesystem::exists((*plane)->dir()));
  EXPECT_FALSE((*plane)->compact()) << "no one is there to answer";
  const Outcome down = run(clusterTool() + " down --name " + (*plane)->id());
  EXPECT_EQ(down.status, 0) << down.output;
  EXPECT_FALSE(std::filesystem::exists((*plane)->dir()));
}

}  // namespace
}  // namespace mbcas::test
