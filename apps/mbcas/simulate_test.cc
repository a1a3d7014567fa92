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

// With results in JSON, unless another format is asked for.
Outcome simulate(std::vector<std::string> arguments) {
  if (std::ranges::find(arguments, "-o") == arguments.end()) {
    arguments.insert(arguments.end(), {"-o", "json"});
  }
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

TEST(Simulate, ATableUnlessAnotherFormatIsAskedFor) {
  const Outcome piped = mbcas::test::runCommand({MBCAS_BINARY, "simulate", kSample});
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, simulate({kSample, "-o", "table"}).out) << "also in a pipe";
  EXPECT_TRUE(simulate({kSample, "-o", "yaml"}).out.starts_with("reports:\n- "));
}

TEST(Simulate, NamesForScripts) {
  const Outcome outcome =
      simulate({kSample, "--policy", "static", "--duration", "20s", "-o", "name"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto document =
      nlohmann::json::parse(simulate({kSample, "--policy", "static", "--duration", "20s"}).out);
  std::string names;
  for (const auto& pod : document.at("reports")[0].at("pods")) {
    names += "pod/" + pod.at("name").get<std::string>() + "\n";
  }
  EXPECT_EQ(outcome.out, names);
  EXPECT_NE(names, "");
}

TEST(Simulate, Json) {
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
  ASSERT_EQ(reports.size(), 9u);
  EXPECT_EQ(reports[0].at("policy"), "unlimited");
  EXPECT_EQ(reports[0].at("usedBesideUnlimited"), 1);
  EXPECT_LT(reports[1].at("usedBesideUnlimited"), 0.9) << "static";
  const Outcome table = simulate({kSample, "--compare", "-o", "table"});
  EXPECT_EQ(std::ranges::count(table.out, '\n'), 10);
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

TEST(Simulate, SomePolicies) {
  const Outcome outcome =
      simulate({kSample, "--policy", "static,burst", "--duration", "90", "-o", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto reports = nlohmann::json::parse(outcome.out).at("reports");
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].at("policy"), "burst");
  EXPECT_EQ(reports[0].at("reactionSeconds"), nullptr) << "never";
  EXPECT_GT(reports[0].at("unanswered"), 0);
}

TEST(Simulate, NodesAreMerged) {
  std::string text = contents(kSample);
  text.insert(text.find("pods:"), "nodes: 3\n");
  const TemporaryFile file(text);
  const Outcome outcome = simulate({file.path(), "--policy", "static", "--duration", "90"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out).at("reports").at(0);
  EXPECT_EQ(report.at("pods").size(), 9u);
  EXPECT_NEAR(report.at("reserved"), 3.0, 1e-6);
}

TEST(Simulate, Page) {
  const TemporaryFile file("");
  const Outcome outcome =
      simulate({kSample, "--compare", "--duration", "120", "--html", file.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string page = contents(file.path());
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  for (const char* part : {"twenty-percent", "Limit and need: web", "Requests of services answered",
                           "class=\"n best\"", "<h2>Method and machine</h2>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("<script>"), page.rfind("<script>")) << "only the page's own";
  for (const char* foreign : {"<script ", "src=", "href=", "@import", ">nan<", ">inf<"}) {
    EXPECT_EQ(page.find(foreign), std::string::npos) << foreign;
  }
  EXPECT_EQ(simulate({kSample, "--duration", "5", "--html", "/no/such/folder/x"}).exit_code, 1);
}

TEST(Simulate, Settings) {
  const auto limit = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {kSample, "-o", "json"});
    const auto reports = nlohmann::json::parse(simulate(std::move(arguments)).out).at("reports");
    return reports.at(0).at("pods").at(0).at("lastLimit").get<double>();
  };
  EXPECT_NE(limit({"--set", "headroom=4"}), limit({}));
  const Outcome bad = simulate({kSample, "--set", "headroom=1.25", "--set", "headroom=1"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_EQ(bad.err, "mbcas simulate: hysteresis: 0.1 is not between 0 and 0\n");
}

TEST(Simulate, SettingsThatAreTimesHaveUnits) {
  const auto simulated = [](const std::string& setting) {
    return simulate({kSample, "--duration", "30s", "-o", "json", "--set", setting});
  };
  const Outcome seconds = simulated("window=45");
  EXPECT_EQ(seconds.exit_code, 0) << seconds.err;
  EXPECT_EQ(simulated("window=45s").out, seconds.out);
  EXPECT_EQ(simulated("window=0m45s").out, seconds.out);
  EXPECT_EQ(simulated("window=2m").err, "mbcas simulate: window: must be 5 to 60 seconds\n");
  EXPECT_EQ(simulated("headroom=2m").exit_code, 2) << "no time";
}

TEST(Simulate, Sweep) {
  const TemporaryFile page("");
  const Outcome outcome = simulate(
      {kSample, "--sweep", "--duration", "20", "--held-out", kSample, "--html", page.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("SETTING"));
  EXPECT_NE(outcome.out.find("\ndefaults "), std::string::npos);
  EXPECT_NE(outcome.out.find("\nburst-hold"), std::string::npos);
  EXPECT_NE(contents(page.path()).find("Throttling against slack, held out"), std::string::npos);
  EXPECT_EQ(simulate({kSample, "--held-out", kSample}).exit_code, 2) << "of a sweep only";
  const auto classic = simulate({kSample, "--sweep", "--policy", "classic", "--duration", "20"});
  EXPECT_EQ(classic.exit_code, 0) << classic.err;
  EXPECT_NE(classic.out.find("throttle-threshold"), std::string::npos) << classic.out;
  EXPECT_EQ(classic.out.find("headroom"), std::string::npos) << classic.out;
  EXPECT_EQ(simulate({kSample, "--sweep", "--policy", "static"}).exit_code, 2);
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
  EXPECT_EQ(simulate({kSample, "-o", "xml"}).exit_code, 2);
  EXPECT_EQ(simulate({kSample, "--duration", "0"}).exit_code, 2);
}

TEST(Simulate, Help) {
  const Outcome outcome = simulate({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("Examples:"), std::string::npos);
}

}  // namespace
