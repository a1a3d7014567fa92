#include "mbcas/agent/sight.h"

#include <gtest/gtest.h>

namespace mbcas::agent {
namespace {

using namespace std::chrono_literals;
using State = Sight::State;

const SightBounds kBounds{.watches = 180s, .cgroups = 30s};

MonotonicTime at(Nanos time) {
  return MonotonicTime(1000s + time);
}

// An agent that has seen everything at time 0, while the server answers.
Evidence good() {
  return {.started = at(-100s),
          .watches = {{.kind = "pods", .heard = at(0s)}, {.kind = "nodes", .heard = at(0s)}},
          .answering = at(-90s),
          .cgroups = {.read = at(0s), .managed = 12}};
}

bool says(const Sight& sight, std::string_view text) {
  return sight.what.find(text) != std::string::npos;
}

TEST(Sight, SeesWhileAllEvidenceIsRecent) {
  EXPECT_EQ(look(good(), kBounds, at(0s)).state, State::kSeeing);
  EXPECT_EQ(look(good(), kBounds, at(30s)).state, State::kSeeing);
  EXPECT_EQ(look(good(), kBounds, at(30s)).what, "");
}

TEST(Sight, IsBlindWhereNoManagedPodCanBeRead) {
  Evidence evidence = good();
  evidence.cgroups.error = "cpu.stat: Permission denied";
  const Sight sight = look(evidence, kBounds, at(31s));
  EXPECT_EQ(sight.state, State::kBlind);
  EXPECT_EQ(sight.what,
            "none of the cgroups of 12 managed pods can be read for 31 s (cpu.stat: Permission "
            "denied)");
  EXPECT_NE(sight.remedy.find("--cgroup-root"), std::string::npos);
  evidence.cgroups.read = at(31s);
  EXPECT_TRUE(look(evidence, kBounds, at(31s)).seeing()) << "as soon as one can be read";
}

TEST(Sight, WithoutManagedPodsTheRootCounts) {
  Evidence evidence = good();
  evidence.cgroups = {.read = at(0s), .managed = 0, .error = "/sys/fs/cgroup: No such file"};
  EXPECT_TRUE(look(evidence, kBounds, at(30s)).seeing());
  const Sight sight = look(evidence, kBounds, at(40s));
  EXPECT_EQ(sight.state, State::kBlind);
  EXPECT_TRUE(says(sight, "the root of the cgroup tree cannot be read for 40 s")) << sight.what;
}

TEST(Sight, IsBlindWhereOneWatchBringsNothing) {
  Evidence evidence = good();
  evidence.cgroups.read = at(200s);
  evidence.watches[1].heard = at(200s);
  evidence.watches[0].error = "403 Forbidden: pods is forbidden";
  EXPECT_TRUE(look(evidence, kBounds, at(180s)).seeing());
  const Sight sight = look(evidence, kBounds, at(181s));
  EXPECT_EQ(sight.state, State::kBlind);
  EXPECT_EQ(sight.what,
            "the watch of pods has brought nothing for 181 s although the API server answers (403 "
            "Forbidden: pods is forbidden)");
  EXPECT_NE(sight.remedy.find("rbac.yaml"), std::string::npos);
  evidence.watches[0].heard = at(181s);
  EXPECT_TRUE(look(evidence, kBounds, at(181s)).seeing());
}

TEST(Sight, AnOutageOfTheServerIsNoBlindness) {
  Evidence evidence = good();
  evidence.cgroups.read = at(1h);
  evidence.answering.reset();
  EXPECT_TRUE(look(evidence, kBounds, at(1h)).seeing());
  // It answers again: the watches have their whole time again.
  evidence.answering = at(1h);
  evidence.cgroups.read = at(1h + 180s);
  EXPECT_TRUE(look(evidence, kBounds, at(1h + 180s)).seeing());
  EXPECT_EQ(look(evidence, kBounds, at(1h + 181s)).state, State::kBlind);
}

TEST(Sight, BeginsWithoutSight) {
  Evidence evidence{.started = at(0s), .watches = {{.kind = "pods", .error = "503"}}};
  Sight sight = look(evidence, kBounds, at(1s));
  EXPECT_EQ(sight.state, State::kStarting);
  EXPECT_TRUE(says(sight, "no cgroup has been read yet")) << sight.what;
  evidence.cgroups.read = at(1s);
  sight = look(evidence, kBounds, at(20s));
  EXPECT_EQ(sight.state, State::kStarting);
  EXPECT_EQ(sight.what, "the watch of pods has not listed anything yet (503)");
  evidence.watches[0].heard = at(20s);
  EXPECT_TRUE(look(evidence, kBounds, at(20s)).seeing());

  Evidence never{.started = at(0s)};
  EXPECT_EQ(look(never, kBounds, at(31s)).state, State::kBlind) << "not for ever";
}

TEST(Answers, CountFromTheEndOfABreak) {
  Answers answers;
  EXPECT_EQ(answers.since(), std::nullopt);
  answers.answered(at(0s));
  answers.answered(at(10s));
  EXPECT_EQ(answers.since(), at(0s));
  // One failure is no break.
  answers.failed(at(20s));
  EXPECT_EQ(answers.since(), at(0s));
  answers.answered(at(25s));
  EXPECT_EQ(answers.since(), at(0s));
  answers.failed(at(51s));
  EXPECT_EQ(answers.since(), std::nullopt);
  answers.answered(at(300s));
  EXPECT_EQ(answers.since(), at(300s));
  // The agent itself was stopped.
  answers.answered(at(400s));
  EXPECT_EQ(answers.since(), at(400s));
  answers.forget();
  EXPECT_EQ(answers.since(), std::nullopt);
  answers.answered(at(401s));
  EXPECT_EQ(answers.since(), at(401s));
}

TEST(Probe, SaysWhatIsWrong) {
  const auto why = [](const Health& health, std::string_view probe) {
    const Result<void> good = readProbe(probeAnswer(health), probe);
    return good ? "" : good.error().message();
  };
  const Sight seeing{.state = State::kSeeing};
  EXPECT_EQ(why({.sight = seeing}, "live"), "");
  EXPECT_EQ(why({.sight = seeing}, "ready"), "");
  const Health blind{.sight = {.state = State::kBlind, .what = "nothing is\nseen"}};
  EXPECT_EQ(why(blind, "ready"), "blind: nothing is seen");
  EXPECT_EQ(why(blind, "live"), "") << "a restart would not help";
  EXPECT_EQ(why({.sight = {.what = "the watch of pods has not listed anything yet"}}, "ready"),
            "starting: the watch of pods has not listed anything yet");
  EXPECT_EQ(why({.sight = seeing, .refused = "403 Forbidden"}, "ready"),
            "silent: the API server refuses the Lease: 403 Forbidden");
  EXPECT_EQ(why({.sight = seeing, .http_loop_silent = 61s}, "live"),
            "the HTTP loop has hung for 61 s");
  EXPECT_EQ(why({.sight = seeing, .http_loop_silent = 60s}, "live"), "");
  // Neither a truncated answer nor another program is good news.
  for (const std::string_view text : {"", "live", "live: o", "ready:", "HTTP/1.1 200 OK\n"}) {
    EXPECT_FALSE(readProbe(text, "live")) << text;
    EXPECT_FALSE(readProbe(text, "ready")) << text;
  }
}

}  // namespace
}  // namespace mbcas::agent
