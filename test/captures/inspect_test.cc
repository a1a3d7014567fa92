// `mbcas inspect`, run as a user would, on trees of ordinary files.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "mbcas/kernel/fake_tree.h"

namespace mbcas {
namespace {

struct Outcome {
  int exit_code;
  std::string output;  // both streams
};

Outcome inspect(const std::string& arguments, const std::string& what = "cgroups") {
  const std::string command =
      std::string(MBCAS_BINARY) + " inspect " + what + " " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  Outcome outcome{};
  std::array<char, 4096> buffer;
  while (const std::size_t length = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), length);
  }
  outcome.exit_code = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

void fill(kernel::FakeTree& tree, const std::string& capture) {
  std::ifstream file("test/captures/" + capture + ".json");
  const nlohmann::json steps = nlohmann::json::parse(file).at("steps");
  for (const auto& [path, content] : steps[0].at("files").items()) {
    tree.write(path, content.get<std::string>());
  }
}

TEST(Inspect, ShowsLayoutPodsAndContainersAsJson) {
  kernel::FakeTree tree;
  fill(tree, "v2-kind");
  const Outcome outcome = inspect("--interval 0.1 -o json --cgroup-root " + tree.root());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto document = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(document["layouts"][0], "cgroup v2, systemd driver, containerd, below /kubelet.slice");
  EXPECT_EQ(document["pods"][0]["uid"], "7d3f1a2b-5c4d-4e6f-8a9b-0c1d2e3f4a5b");
  EXPECT_EQ(document["pods"][0]["limitMillicores"], 200);
  EXPECT_EQ(document["pods"][0]["containers"].size(), 2u);
  EXPECT_EQ(document["failures"], 0);
}

TEST(Inspect, ShowsATableWithoutColoursInAPipe) {
  kernel::FakeTree tree;
  fill(tree, "v1-cgroupfs");
  const Outcome outcome = inspect("--interval 0.1 --cgroup-root " + tree.root());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("cgroupfs driver, containerd or docker, below /"),
            std::string::npos);
  EXPECT_NE(outcome.output.find("pod 7d3f1a2b-5c4d-4e6f-8a9b-0c1d2e3f4a5b"), std::string::npos);
  EXPECT_EQ(outcome.output.find('\x1b'), std::string::npos);
}

TEST(Inspect, SaysWhatToDoWhenThereIsNothing) {
  const kernel::FakeTree empty({{"cgroup.controllers", "cpu\n"}});
  Outcome outcome = inspect("--cgroup-root " + empty.root());
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("no pods"), std::string::npos);
  EXPECT_NE(outcome.output.find("--cgroup-root"), std::string::npos);
  outcome = inspect("--cgroup-root /nonexistent");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("/nonexistent"), std::string::npos);
  EXPECT_EQ(inspect("--no-such-flag").exit_code, 2);
}

TEST(InspectMachine, ShowsTheTreeAsJson) {
  kernel::FakeTree tree;
  fill(tree, "v2-kind");
  const Outcome outcome = inspect("--interval 0.1 -o json --cgroup-root " + tree.root(), "machine");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto document = nlohmann::json::parse(outcome.output);
  EXPECT_GE(document["cpus"], 1);
  std::map<std::string, int> kinds;
  std::int64_t leaves = 0;
  for (const auto& entry : document["tree"]) {
    ++kinds[entry["kind"]];
    if (entry["kind"] != "inner") leaves += entry["usageMillicores"].get<std::int64_t>();
  }
  EXPECT_EQ(kinds["pod"], 1);
  EXPECT_EQ(kinds["inner"], 2) << "kubelet.slice and kubelet-kubepods.slice";
  EXPECT_EQ(kinds["tasks"], kinds["inner"] + 1);
  EXPECT_EQ(leaves, document["usageMillicores"]);
}

TEST(InspectMachine, ShowsATableAlsoWithoutPods) {
  const kernel::FakeTree tree({{"cgroup.controllers", "cpu\n"},
                               {"cgroup.procs", ""},
                               {"system.slice/cpu.stat", "usage_usec 5\n"},
                               {"system.slice/cpu.weight", "200\n"}});
  const Outcome outcome = inspect("--interval 0.1 --cgroup-root " + tree.root(), "machine");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("system.slice  other    2048"), std::string::npos)
      << outcome.output;
  EXPECT_EQ(inspect("--cgroup-root /nonexistent", "machine").exit_code, 1);
}

}  // namespace
}  // namespace mbcas
