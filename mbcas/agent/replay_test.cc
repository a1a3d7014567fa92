#include "mbcas/agent/replay.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "test/support/golden.h"

namespace mbcas::agent {
namespace {

using Lines = std::vector<std::string>;

Result<Lines> replayed(const std::string& path, const ReplayOptions& options = {.cpus = 2}) {
  Lines lines;
  Result<void> done =
      replay(path, options, [&](std::string line) { lines.push_back(std::move(line)); });
  if (!done) return failure(std::move(done).error());
  return lines;
}

std::string errorOf(const std::string& text) {
  const std::string path = ::testing::TempDir() + "replay.json";
  std::ofstream(path) << text;
  const Result<Lines> lines = replayed(path);
  return lines ? "" : lines.error().message().substr(path.size() + 2);
}

TEST(Replay, DecidesAsTheAgentWouldHave) {
  std::string text;
  for (const char* name : {"v1-cgroupfs", "v2-containerd-systemd"}) {
    const Result<Lines> lines = replayed(std::string("test/captures/") + name + ".json");
    ASSERT_TRUE(lines) << lines.error().message();
    for (const std::string& line : *lines) text += line + "\n";
  }
  test::expectGolden("test/golden/agent/replay.jsonl", text);
}

TEST(Replay, TellsTheStateInTheEnd) {
  const Result<Lines> lines = replayed("test/captures/v1-kind.json", {.cpus = 2, .state = true});
  ASSERT_TRUE(lines);
  EXPECT_TRUE(lines->back().starts_with(R"({"node":"replay","time":"1970-01-01T)"));
  EXPECT_NE(lines->back().find(R"("ticks":4,)"), std::string::npos) << "each step is a sample";
}

TEST(Replay, IsTheSameEveryTime) {
  const Result<Lines> first = replayed("test/captures/v2-kind.json");
  const Result<Lines> second = replayed("test/captures/v2-kind.json");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_FALSE(first->empty());
}

TEST(Replay, SettingsCount) {
  ReplayOptions options{.cpus = 2};
  options.settings.law.headroom = 2;
  const Result<Lines> changed = replayed("test/captures/v2-kind.json", options);
  const Result<Lines> usual = replayed("test/captures/v2-kind.json");
  ASSERT_TRUE(changed && usual);
  EXPECT_NE(*changed, *usual);
}

TEST(Replay, RefusesWhatIsNoRecording) {
  EXPECT_EQ(replayed("nowhere.json").error().message(), "nowhere.json: it cannot be read");
  EXPECT_NE(errorOf("not JSON"), "");
  EXPECT_EQ(errorOf("{}"), "not a recording of tools/capture-cgroups in format 1");
  EXPECT_EQ(errorOf(R"({"format":1,"steps":[]})"), "it has no steps");
  EXPECT_NE(errorOf(R"({"format":1,"steps":[{"at":"x"}]})").find("not a time"), std::string::npos);
  EXPECT_EQ(errorOf(R"({"format":1,"steps":[{"at":2,"files":{}},{"at":1,"files":{}}]})"),
            "steps[1].at: not later");
  for (const char* path : {"../x", "/etc/x", "a/../../x", ""}) {
    const std::string text =
        std::string(R"({"format":1,"steps":[{"at":1,"files":{")") + path + R"(":"x"}}]})";
    EXPECT_NE(errorOf(text).find("not a path within the tree"), std::string::npos) << path;
  }
}

}  // namespace
}  // namespace mbcas::agent
