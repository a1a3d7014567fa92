// `mbcas simulate` as its users run it: as a process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/command.h"

namespace {

using mbcas::test::Outcome;

constexpr const char* kSample = "docs/samples/simulation.yaml";

Outcome simulate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {MBCAS_BINARY, "simulate"});
  return mbcas::test::runCommand(std::move(arguments));
}

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A file with this text, for as long as the object lives.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("mbcas-simulate-test-" + std::to_string(::getpid()) + ".yaml")) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Under the declared limits, so that it changes with the model only.
TEST(Simulate, Table) {
  const Outcome outcome = simulate({kSample, "--policy", "static", "-o", "table"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, contents("test/golden/sim/static.table"));
}

TEST(Simulate, Csv) {
  const Outcome outcome = simulate({kSample, "--policy", "static", "-o", "csv"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, contents("test/golden/sim/static.csv"));
}

TEST(Simulate, JsonWhereItIsNoTerminal) {
  const Outcome outcome = simulate({kSample});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out).at("reports").at(0);
  EXPECT_EQ(report.at("policy"), "responsive");
  EXPECT_EQ(report.at("pods").size(), 3u);
  EXPECT_EQ(report.at("pods")[0].at("name"), "web");
}

TEST(Simulate, AllPoliciesBesideEachOther) {
  const Outcome outcome = simulate({kSample, "--compare", "-o", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto reports = nlohmann::json::parse(outcome.out).at("reports");
  ASSERT_EQ(reports.size(), 5u);
  EXPECT_EQ(reports[0].at("policy"), "unlimited");
  EXPECT_EQ(reports[0].at("usedBesideUnlimited"), 1);
  EXPECT_LT(reports[1].at("usedBesideUnlimited"), 0.9) << "static";
  const Outcome table = simulate({kSample, "--compare", "-o", "table"});
  EXPECT_EQ(std::ranges::count(table.out, '\n'), 6);
  const Outcome markdown = simulate({kSample, "--compare", "-o", "markdown"});
  EXPECT_TRUE(markdown.out.starts_with("| SCENARIO | POLICY |"));
}

TEST(Simulate, SeedAndDuration) {
  const auto report = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {kSample, "-o", "json", "--policy", "static"});
    return nlohmann::json::parse(simulate(std::move(arguments)).out).at("reports").at(0);
  };
  EXPECT_EQ(report({"--duration", "90"}).at("seconds"), 90);
  EXPECT_EQ(report({"--seed", "7"}), report({"--seed", "7"}));
  EXPECT_NE(report({"--seed", "7"}).at("pods"), report({"--seed", "8"}).at("pods"));
}

TEST(Simulate, Series) {
  const TemporaryFile file("");
  const Outcome outcome =
      simulate({kSample, "--duration", "10", "--policy", "static", "--series", file.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string series = contents(file.path());
  EXPECT_TRUE(series.starts_with("seconds,pod,offered,used,throttled,limit\n1,web,"));
  EXPECT_EQ(std::ranges::count(series, '\n'), 31);
  EXPECT_EQ(simulate({kSample, "--duration", "10", "--series", "/no/such/folder/x"}).exit_code, 1);
}

TEST(Simulate, BadInputSaysWhere) {
  const TemporaryFile file("pods:\n  - name: a\n    workload: {kind: dance}\n");
  const Outcome outcome = simulate({file.path()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "mbcas simulate: " + file.path() +
                ": line 3: pods[0].workload.kind: must be one of idle, spin, periodic, bursty, "
                "service\n");
}

TEST(Simulate, BadUse) {
  const Outcome missing = simulate({"no/such/file.yaml"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.err, "mbcas simulate: cannot read no/such/file.yaml\n");
  EXPECT_EQ(simulate({"docs"}).exit_code, 1) << "a directory";
  EXPECT_EQ(simulate({}).exit_code, 2);
  EXPECT_EQ(simulate({kSample, "--policy", "wish"}).exit_code, 2);
  EXPECT_EQ(simulate({kSample, "--policy", "static", "--compare"}).exit_code, 2);
  EXPECT_EQ(simulate({kSample, "-o", "yaml"}).exit_code, 2);
  EXPECT_EQ(simulate({kSample, "--duration", "0"}).exit_code, 2);
}

TEST(Simulate, Help) {
  const Outcome outcome = simulate({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("Examples:"), std::string::npos);
}

}  // namespace
