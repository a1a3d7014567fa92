#include "mbcas/agent/outbox.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace mbcas::agent {
namespace {

using namespace literals;
using namespace std::chrono_literals;

constexpr MonotonicTime kStart{1000s};

Wish wishFor(std::string uid, Millicores desired, bool urgent = false, double urgency = 0) {
  return {.uid = std::move(uid),
          .spec = {.name_space = "shop", .desired = desired},
          .urgent = urgent,
          .urgency = urgency};
}

struct Box : Outbox {
  explicit Box(const Options& options = {}) : Outbox(options) {}
  // What is taken now, as "uid desired".
  std::string taken(MonotonicTime now) {
    const std::optional<Wish> wish = take(now);
    return wish ? fmt::format("{} {}", wish->uid, wish->spec.desired.count()) : "";
  }
};

TEST(Outbox, WritesTheNewestWishOfAPodOnly) {
  Box box;
  EXPECT_EQ(box.taken(kStart), "");
  EXPECT_FALSE(box.next(kStart));
  box.put(wishFor("a", 100_m), kStart);
  box.put(wishFor("a", 200_m), kStart);
  EXPECT_EQ(box.waiting(), 1u);
  EXPECT_EQ(box.next(kStart), kStart);
  EXPECT_EQ(box.taken(kStart), "a 200");
  EXPECT_EQ(box.taken(kStart), "");
}

TEST(Outbox, WritesOneOfAPodAtATimeAndThenTheNewest) {
  Box box;
  box.put(wishFor("a", 100_m), kStart);
  EXPECT_EQ(box.taken(kStart), "a 100");
  box.put(wishFor("a", 200_m), kStart);
  box.put(wishFor("a", 300_m), kStart);
  EXPECT_EQ(box.taken(kStart), "") << "the first is under way";
  EXPECT_FALSE(box.next(kStart));
  EXPECT_EQ(box.written("a"), nullptr);
  box.done("a", WriteResult::kDone, kStart);
  ASSERT_NE(box.written("a"), nullptr);
  EXPECT_EQ(box.written("a")->desired, 100_m);
  EXPECT_EQ(box.taken(kStart), "a 300");
  box.done("a", WriteResult::kDone, kStart);
  EXPECT_EQ(box.written("a")->desired, 300_m);
  EXPECT_EQ(box.waiting(), 0u);
}

TEST(Outbox, TheMostUrgentComesFirst) {
  Box box(Outbox::Options{.in_flight = 10});
  box.put(wishFor("steady", 100_m, false, 9e9), kStart);
  box.put(wishFor("first", 100_m), kStart);
  box.put(wishFor("second", 100_m), kStart);
  box.put(wishFor("little", 100_m, true, 10), kStart);
  box.put(wishFor("much", 100_m, true, 1000), kStart);
  EXPECT_EQ(box.taken(kStart), "much 100");
  EXPECT_EQ(box.taken(kStart), "little 100");
  EXPECT_EQ(box.taken(kStart), "steady 100");
  box.put(wishFor("first", 200_m), kStart);
  EXPECT_EQ(box.taken(kStart), "first 200") << "a newer wish does not lose its place";
  EXPECT_EQ(box.taken(kStart), "second 100");
}

TEST(Outbox, BoundsHowManyAreUnderWayAndHowManyInASecond) {
  Box box(Outbox::Options{.writes_per_second = 2, .burst = 3, .in_flight = 2});
  for (const char* uid : {"a", "b", "c", "d"}) box.put(wishFor(uid, 100_m), kStart);
  EXPECT_EQ(box.taken(kStart), "a 100");
  EXPECT_EQ(box.taken(kStart), "b 100");
  EXPECT_EQ(box.taken(kStart), "");
  EXPECT_FALSE(box.next(kStart)) << "two are under way";
  box.done("a", WriteResult::kDone, kStart);
  box.done("b", WriteResult::kDone, kStart);
  EXPECT_EQ(box.taken(kStart), "c 100");
  box.done("c", WriteResult::kDone, kStart);
  EXPECT_EQ(box.taken(kStart), "") << "three at once";
  ASSERT_TRUE(box.next(kStart));
  EXPECT_GT(*box.next(kStart), kStart + 499ms);
  EXPECT_EQ(box.taken(*box.next(kStart)), "d 100");
}

TEST(Outbox, AfterAFailureFewerAreUnderWay) {
  Box box(Outbox::Options{.writes_per_second = 1000, .burst = 1000, .in_flight = 3});
  for (const char* uid : {"a", "b", "c", "d", "e", "f", "g", "h", "i"}) {
    box.put(wishFor(uid, 100_m), kStart);
  }
  const auto takeAll = [&](MonotonicTime now) {
    std::string taken;
    while (const std::optional<Wish> wish = box.take(now)) taken += wish->uid;
    return taken;
  };
  EXPECT_EQ(takeAll(kStart), "abc");
  box.done("a", WriteResult::kDone, kStart);
  box.done("b", WriteResult::kFailed, kStart, 1s);
  box.done("c", WriteResult::kDone, kStart);  // sent before: it grows again from one
  const MonotonicTime later = *box.next(kStart);
  EXPECT_EQ(takeAll(later), "de");
  box.done("d", WriteResult::kFailed, later, 1s);
  box.done("e", WriteResult::kFailed, later, 1s);
  const MonotonicTime last = *box.next(later);
  EXPECT_EQ(takeAll(last), "f") << "one at a time";
  box.done("f", WriteResult::kDone, last);
  EXPECT_EQ(takeAll(last), "gh");
  box.done("g", WriteResult::kDone, last);
  box.done("h", WriteResult::kDone, last);
  EXPECT_EQ(takeAll(last).size(), 2U) << "not yet three, after two rounds and a half";
}

TEST(Outbox, FailuresBackOffAndTheNewestIsWrittenThen) {
  Box box;
  box.put(wishFor("a", 100_m), kStart);
  MonotonicTime now = kStart;
  for (const Nanos least : {1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s}) {
    ASSERT_NE(box.taken(now), "");
    box.done("a", WriteResult::kFailed, now);
    ASSERT_TRUE(box.next(now));
    EXPECT_GE(*box.next(now) - now, least);
    EXPECT_LE(*box.next(now) - now, least * 5 / 4);
    EXPECT_EQ(box.taken(now + least - 1ns), "");
    now = *box.next(now);
  }
  box.put(wishFor("a", 200_m), now);
  EXPECT_EQ(box.taken(now), "a 200");
  box.done("a", WriteResult::kDone, now);
  box.put(wishFor("a", 300_m), now);
  EXPECT_EQ(box.taken(now), "a 300") << "a success ends it";
  box.done("a", WriteResult::kFailed, now);
  EXPECT_LE(*box.next(now) - now, Nanos(1250ms));
}

TEST(Outbox, ANewWishDoesNotShortenABackOff) {
  Box box;
  box.put(wishFor("a", 100_m), kStart);
  box.take(kStart);
  box.done("a", WriteResult::kFailed, kStart);
  box.put(wishFor("a", 200_m), kStart);
  EXPECT_EQ(box.taken(kStart + 900ms), "");
  EXPECT_EQ(box.taken(kStart + 1250ms), "a 200");
}

TEST(Outbox, WhatFailedIsDueWhenTheServerAnswersAgain) {
  Box box;
  for (const char* uid : {"a", "b", "c"}) {
    box.put(wishFor(uid, 100_m), kStart);
    box.take(kStart);
  }
  box.done("a", WriteResult::kFailed, kStart);
  box.done("b", WriteResult::kFailed, kStart);
  box.done("c", WriteResult::kRefused, kStart);
  box.answers(kStart + 10ms);
  EXPECT_EQ(box.taken(kStart + 10ms), "a 100");
  box.done("a", WriteResult::kDone, kStart + 10ms);
  EXPECT_EQ(box.taken(kStart + 10ms), "b 100");
  EXPECT_EQ(box.taken(kStart + 10ms), "") << "the server would refuse it again";
}

TEST(Outbox, DoesAsTheServerAsks) {
  Box box;
  box.put(wishFor("a", 100_m), kStart);
  box.take(kStart);
  box.done("a", WriteResult::kFailed, kStart, 7s);
  box.put(wishFor("b", 100_m, true, 10), kStart);
  box.answers(kStart + 1s);
  ASSERT_TRUE(box.next(kStart));
  const MonotonicTime next = *box.next(kStart);
  EXPECT_GE(next, kStart + 7s) << "nothing is written meanwhile";
  EXPECT_LE(next, kStart + 10500ms) << "and not much longer";
  EXPECT_EQ(box.taken(next - 1ns), "");
  EXPECT_EQ(box.taken(next), "b 100");
  box.done("b", WriteResult::kDone, next);
  EXPECT_EQ(box.taken(next), "a 100") << "it was not the pod that failed: no back-off of its own";
}

TEST(Outbox, WhoWasAskedTogetherComesBackApart) {
  std::set<MonotonicTime> times;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Box box(Outbox::Options{.seed = seed});
    box.put(wishFor("a", 100_m), kStart);
    box.take(kStart);
    box.done("a", WriteResult::kFailed, kStart, 0s);
    times.insert(*box.next(kStart));
    EXPECT_GE(*box.next(kStart), kStart + 1s) << "at once would be asked again";
  }
  EXPECT_EQ(times.size(), 20u);
}

TEST(Outbox, WhatWasRefusedIsTriedLateOrAnew) {
  Box box;
  box.put(wishFor("a", 100_m), kStart);
  box.take(kStart);
  box.done("a", WriteResult::kRefused, kStart);
  box.put(wishFor("a", 100_m), kStart + 1s);
  EXPECT_EQ(box.taken(kStart + 299s), "") << "the same would be refused again";
  box.put(wishFor("a", 200_m), kStart + 299s);
  EXPECT_EQ(box.taken(kStart + 299s), "a 200");
  box.done("a", WriteResult::kRefused, kStart + 299s);
  EXPECT_EQ(box.taken(kStart + 700s), "a 200");
  box.put(wishFor("a", 300_m), kStart + 700s);
  box.done("a", WriteResult::kRefused, kStart + 700s);
  EXPECT_EQ(box.taken(kStart + 700s), "a 300") << "there was a new one meanwhile";
}

TEST(Outbox, ForgetsWhatIsGone) {
  Box box;
  box.put(wishFor("a", 100_m), kStart);
  box.forget("a");
  EXPECT_EQ(box.taken(kStart), "");
  box.put(wishFor("a", 100_m), kStart);
  box.take(kStart);
  box.done("a", WriteResult::kGone, kStart);
  EXPECT_FALSE(box.next(kStart));
  box.put(wishFor("a", 100_m), kStart);
  box.take(kStart);
  box.put(wishFor("a", 200_m), kStart);
  box.forget("a");
  box.done("a", WriteResult::kFailed, kStart);
  EXPECT_FALSE(box.next(kStart)) << "forgotten while it was under way";
  box.put(wishFor("a", 100_m), kStart);
  box.take(kStart);
  box.forget("a");
  box.put(wishFor("a", 300_m), kStart);
  box.done("a", WriteResult::kDone, kStart);
  EXPECT_EQ(box.taken(kStart), "a 300") << "and wished for again";
}

// Whatever happens in whatever order: what is taken is the newest wish of its pod, no pod twice at
// once, nothing before its back-off has passed, no more in any second than the rate allows; and in
// the end the last wish of every pod is written.
RC_GTEST_PROP(Outbox, NeverWritesWhatIsStale, ()) {
  constexpr double kRate = 5;
  constexpr int kBurst = 4;
  Outbox box({.writes_per_second = kRate,
              .burst = kBurst,
              .in_flight = 3,
              .seed = *rc::gen::arbitrary<std::uint64_t>()});
  MonotonicTime now = kStart;
  std::map<std::string, Wish> newest;
  std::map<std::string, Wish> under_way;
  std::map<std::string, podallocation::Spec> written;
  std::map<std::string, MonotonicTime> not_before;
  std::vector<MonotonicTime> takes;
  int number = 0;
  const auto take = [&] {
    const std::optional<MonotonicTime> next = box.next(now);
    const std::optional<Wish> wish = box.take(now);
    RC_ASSERT(wish.has_value() == (next && *next <= now));
    if (!wish) return false;
    RC_ASSERT(newest.contains(wish->uid));
    RC_ASSERT(*wish == newest.at(wish->uid));
    RC_ASSERT(!under_way.contains(wish->uid));
    if (not_before.contains(wish->uid)) RC_ASSERT(now >= not_before.at(wish->uid));
    for (const auto& [uid, other] : newest) {
      const bool ready = !under_way.contains(uid) && !not_before.contains(uid) &&
                         (!written.contains(uid) || written.at(uid) != other.spec);
      if (ready && wish->urgent == other.urgent) RC_ASSERT(wish->urgency >= other.urgency);
      if (ready) RC_ASSERT(wish->urgent || !other.urgent);
    }
    under_way[wish->uid] = *wish;
    RC_ASSERT(under_way.size() <= 3u);
    takes.push_back(now);
    return true;
  };
  // A copy of the name: the caller's may be the very one that is erased.
  const auto end = [&](std::string uid, WriteResult result) {
    const Wish sent = under_way.at(uid);
    under_way.erase(uid);
    not_before.erase(uid);
    box.done(uid, result, now);
    if (result == WriteResult::kDone) written[uid] = sent.spec;
    if (result == WriteResult::kFailed && newest.contains(uid)) not_before[uid] = now + 1s;
    if (result == WriteResult::kGone) newest.erase(uid), written.erase(uid);
  };
  const int steps = *rc::gen::inRange(1, 200);
  for (int step = 0; step < steps; ++step) {
    const std::string uid = fmt::format("p{}", *rc::gen::inRange(0, 6));
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
      case 1:
      case 2: {
        const Wish wish = wishFor(uid, Millicores(++number), *rc::gen::arbitrary<bool>(),
                                  *rc::gen::inRange(0, 100));
        newest[uid] = wish;
        box.put(wish, now);
        break;
      }
      case 3:
        newest.erase(uid);
        written.erase(uid);
        not_before.erase(uid);
        box.forget(uid);
        break;
      case 4:
        now += Nanos(*rc::gen::inRange<std::int64_t>(0, 2'000'000'000));
        break;
      case 5:
        if (!under_way.empty()) {
          end(under_way.begin()->first,
              *rc::gen::element(WriteResult::kDone, WriteResult::kFailed, WriteResult::kGone));
        }
        break;
      default:
        take();
    }
  }
  for (int i = 0; i < 10'000; ++i) {
    while (!under_way.empty()) end(under_way.begin()->first, WriteResult::kDone);
    if (take()) continue;
    const std::optional<MonotonicTime> next = box.next(now);
    if (!next) break;
    RC_ASSERT(*next > now);
    now = *next;
  }
  RC_ASSERT(box.waiting() == 0u);
  for (const auto& [uid, wish] : newest) RC_ASSERT(written.at(uid) == wish.spec);
  for (std::size_t i = 0; i < takes.size(); ++i) {
    const auto within = std::ranges::count_if(
        takes, [&](MonotonicTime at) { return at >= takes[i] && at < takes[i] + 1s; });
    RC_ASSERT(within <= kBurst + static_cast<int>(kRate) + 1);
  }
}

}  // namespace
}  // namespace mbcas::agent
