#include "mbcas/cli/recording.h"

#include <gtest/gtest.h>

#include "mbcas/cli/record.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

const std::string kFirst = R"({"mbcasRecording":1,"title":"node-1"})";

std::string errorOf(const std::string& text) {
  const Result<Recording> recording = parseRecording(text);
  return recording ? "" : recording.error().message();
}

TEST(Recording, ReadsBackWhatWasWritten) {
  const Result<NodeRecord> node = parseState(test::fileText("test/golden/cli/state.json"));
  ASSERT_TRUE(node) << node.error().message();
  const Recording written{.title = "a \"name\"", .states = {stateJson(*node), stateJson(*node)}};
  const Result<Recording> read = parseRecording(recordingText(written));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, written);
}

TEST(Recording, KeepsOfAStateWhatIsKnown) {
  const Result<Recording> read = parseRecording(
      kFirst + "\n\n" + R"({"node":"n","time":"2026-02-01T10:05:00Z","new":[1,{"a":"b"}]})");
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->states.size(), 1u);
  EXPECT_EQ(read->states[0].find("new"), std::string::npos);
  EXPECT_EQ(parseState(read->states[0])->node, "n");
}

TEST(Recording, OfACluster) {
  const Recording written{
      .title = "cluster",
      .states = {},
      .pictures =
          {R"({"time":"2026-02-01T10:05:00.000000Z","nodes":[],"namespaces":[],"notes":["a"]})",
           R"({"time":"2026-02-01T10:05:09.250000Z","nodes":[],"namespaces":[],"notes":[],"gone":["n1"]})"},
      .pods = {{.name_space = "shop",
                .pod = "web-1",
                .node = "n1",
                .have = Millicores(500),
                .wanted = Millicores(900),
                .desired = Millicores(400),
                .bound = true,
                .phase = "Applied",
                .reason = "\"why\""}}};
  const Result<Recording> read = parseRecording(recordingText(written));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, written);
  EXPECT_EQ(errorOf(kFirst + "\n{\"cluster\":{\"nodes\":[]}}"),
            "line 2: a picture of a cluster without a time");
  EXPECT_TRUE(errorOf(kFirst + "\n{\"cluster\":[]}").starts_with("line 2: "));
  EXPECT_TRUE(errorOf(kFirst + "\n{\"clusterPods\":{}}").starts_with("line 2: "));
}

TEST(Recording, RefusesWhatIsNone) {
  EXPECT_EQ(errorOf(""), "not a recording: it has no states");
  EXPECT_EQ(errorOf(kFirst), "not a recording: it has no states");
  EXPECT_TRUE(errorOf("{}").starts_with("line 1: not a recording"));
  EXPECT_TRUE(errorOf("pods:\n  - name: web\n").starts_with("line 1: not a recording"));
  EXPECT_EQ(errorOf(R"({"mbcasRecording":2})"), "line 1: a recording of a later version of mbcas");
  EXPECT_EQ(errorOf(kFirst + "\n{}"), "line 2: a state without a time");
  EXPECT_EQ(errorOf(kFirst + "\n{\"time\":\"1970-01-01T00:00:00.5Z\"}"),
            "line 2: a state without a time");
  EXPECT_TRUE(errorOf(kFirst + "\n{\"time\":").starts_with("line 2: "));
}

TEST(Recording, IsBounded) {
  std::string many = kFirst + "\n";
  for (std::size_t i = 0; i <= kMostStates; ++i) many += "{\"time\":\"2026-02-01T10:05:00Z\"}\n";
  EXPECT_EQ(errorOf(many), "a recording has 7200 states at most");
  EXPECT_EQ(errorOf(std::string(kLongestRecording + 1, ' ')),
            "a recording has 67108864 bytes at most");
}

}  // namespace
}  // namespace mbcas::cli
