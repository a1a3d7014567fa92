// `mbcas solve` as its users run it: as a process.
#include <gtest/gtest.h>

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

// With answers in JSON, unless another format is asked for.
Outcome solve(std::vector<std::string> arguments, const std::string& input) {
  if (std::ranges::find(arguments, "-o") == arguments.end()) {
    arguments.insert(arguments.end(), {"-o", "json"});
  }
  arguments.insert(arguments.begin(), {MBCAS_BINARY, "solve"});
  return mbcas::test::runCommand(std::move(arguments), input);
}

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Solve, TheFirstExample) {
  const Outcome outcome = solve(
      {},
      R"({"capacity":1000,"pods":[{"id":"a","bid":60,"min":100},{"id":"b","bid":40,"min":100}]})");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            R"({"mode":"congested","price":0.125,"allocated":1000,"unallocated":0,"pods":[)"
            R"({"id":"a","cpu":580,"bound":"none"},{"id":"b","cpu":420,"bound":"none"}]})"
            "\n");
}

TEST(Solve, ATableUnlessAnotherFormatIsAskedFor) {
  const std::string input = R"({"capacity":1000,"pods":[{"id":"a: b","bid":60,"min":100}]})";
  const Outcome table = mbcas::test::runCommand({MBCAS_BINARY, "solve"}, input);
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_NE(table.out.find("POD   "), std::string::npos) << "also in a pipe:\n" << table.out;
  EXPECT_EQ(solve({"-o", "table"}, input).out, table.out);
  EXPECT_NE(solve({"-o", "yaml"}, input).out.find("\n- id: \"a: b\"\n  cpu: 1000\n"),
            std::string::npos);
  EXPECT_EQ(solve({"-o", "name"}, input).out, "pod/a: b\n");
}

TEST(Solve, EveryGoldenCase) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator("test/golden/market")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path());
    const nlohmann::json file = nlohmann::json::parse(contents(entry.path()));
    for (const auto& golden : file.at("cases")) {
      SCOPED_TRACE(golden.at("name"));
      const Outcome outcome = solve({"-"}, golden.at("input").dump());
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_EQ(nlohmann::json::parse(outcome.out), golden.at("output")) << outcome.out;
      ++cases;
    }
  }
  EXPECT_GT(cases, 20);
}

TEST(Solve, ReadsAFile) {
  const Outcome outcome = solve({"docs/samples/market.json"}, "");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("allocated"), 4000);
}

TEST(Solve, MissingFile) {
  const Outcome outcome = solve({"no/such/file.json"}, "");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "mbcas solve: cannot open no/such/file.json\n");
  EXPECT_EQ(solve({"docs"}, "").exit_code, 1) << "a directory opens, but cannot be read";
}

TEST(Solve, Table) {
  const Outcome outcome = solve({"-o", "table"}, contents("docs/samples/market.json"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, contents("test/golden/market/sample.table"));
}

TEST(Solve, TableDisarmsIds) {
  const Outcome outcome = solve({"-o", "table"}, R"({"capacity":1,"pods":[{"id":"\u001b[31mx"}]})");
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_NE(outcome.out.find("\\x1b[31mx"), std::string::npos);
}

TEST(Solve, Lines) {
  const Outcome outcome = solve({"--jsonl"},
                                "{\"capacity\":5,\"pods\":[]}\n"
                                "\n"
                                "{\"capacity\":5}\n"
                                "not json\n"
                                "{\"capacity\":7,\"pods\":[{\"id\":\"a\"}]}");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "mbcas solve: line 3: pods: is missing\n"
            "mbcas solve: line 4: not JSON at byte 2, near `no`\n");
  EXPECT_EQ(
      outcome.out,
      "{\"mode\":\"uncongested\",\"price\":0,\"allocated\":0,\"unallocated\":5,\"pods\":[]}\n"
      "{\"error\":\"pods: is missing\"}\n"
      "{\"error\":\"not JSON at byte 2, near `no`\"}\n"
      "{\"mode\":\"uncongested\",\"price\":0,\"allocated\":7,\"unallocated\":0,\"pods\":[{\"id\":"
      "\"a\",\"cpu\":7,\"bound\":\"max\"}]}\n");
}

TEST(Solve, BadInputSaysWhere) {
  const Outcome outcome = solve({}, R"({"capacity":1,"pods":[{"id":"a","min":200,"max":100}]})");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "mbcas solve: pods[0].max: 100 is below min 200\n");
}

TEST(Solve, BadUse) {
  EXPECT_EQ(solve({"--nonsense"}, "").exit_code, 2);
  EXPECT_EQ(solve({"-o", "xml"}, "").exit_code, 2);
  EXPECT_EQ(solve({"--jsonl", "-o", "table"}, "").exit_code, 2);
}

TEST(Solve, Help) {
  const Outcome outcome = solve({"--help"}, "");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("Example:"), std::string::npos);
}

TEST(Solve, RefusesAHundredMegabytes) {
  std::string input = R"({"capacity":1,"pods":[)";
  while (input.size() < 100'000'000) input += R"({"id":"a","bid":1,"min":1},)";
  const Outcome outcome = solve({}, input);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "mbcas solve: longer than 33554432 bytes\n");
  // As a line it is one bad line among others.
  const Outcome lines = solve({"--jsonl"}, input + "\n{\"capacity\":5,\"pods\":[]}\n");
  EXPECT_EQ(lines.exit_code, 2);
  EXPECT_EQ(lines.err, "mbcas solve: line 1: longer than 33554432 bytes\n");
  EXPECT_NE(lines.out.find("\"unallocated\":5"), std::string::npos);
}

TEST(Solve, RefusesDeepNesting) {
  for (const char* bracket : {"[", "{\"pods\":", "{\"capacity\":["}) {
    std::string input;
    while (input.size() < 30'000'000) input += bracket;
    const Outcome outcome = solve({}, input);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_LT(outcome.err.size(), 200u) << outcome.err;
  }
}

}  // namespace
