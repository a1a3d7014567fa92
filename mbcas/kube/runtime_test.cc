// Work queue, controller, leader election and events: the rules on a simulated clock, the threads
// on the real one.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "mbcas/base/time.h"
#include "mbcas/kube/controller.h"
#include "mbcas/kube/events.h"
#include "mbcas/kube/leader.h"
#include "mbcas/kube/metrics.h"
#include "mbcas/kube/work_queue.h"

namespace mbcas::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// --- work queue ---

class QueueRulesTest : public testing::Test {
 protected:
  std::string take() {
    const auto taken = rules.take(clock.monotonic());
    return taken ? taken->key : "-";
  }
  void add(const std::string& key) { rules.add(key, clock.monotonic()); }
  void done(const std::string& key) { rules.done(key, clock.monotonic()); }

  SimulatedClock clock;
  QueueRules rules{QueueOptions{}};
};

TEST_F(QueueRulesTest, IsFirstInFirstOutAndCoalesces) {
  add("a");
  add("b");
  add("a");
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(take(), "b");
  EXPECT_EQ(take(), "-");
}

TEST_F(QueueRulesTest, HoldsAKeyBackWhileItIsWorkedOn) {
  add("a");
  EXPECT_EQ(take(), "a");
  add("a");
  add("a");
  EXPECT_EQ(take(), "-");
  done("a");
  EXPECT_EQ(take(), "a");
  done("a");
  EXPECT_EQ(take(), "-");
}

TEST_F(QueueRulesTest, TheEarliestOfSeveralDelaysCounts) {
  rules.addAfter("a", seconds(10), clock.monotonic());
  rules.addAfter("a", seconds(5), clock.monotonic());
  rules.addAfter("a", seconds(7), clock.monotonic());
  EXPECT_EQ(*rules.nextDue() - clock.monotonic(), seconds(5));
  clock.advance(seconds(5));
  EXPECT_EQ(take(), "a");
  done("a");
  clock.advance(seconds(60));
  EXPECT_EQ(take(), "-");
}

TEST_F(QueueRulesTest, BacksOffPerKeyUntilForgotten) {
  std::vector<Nanos> delays;
  for (int i = 0; i < 20; ++i) delays.push_back(rules.retry("a", clock.monotonic()));
  EXPECT_EQ(delays[0], milliseconds(5));
  EXPECT_EQ(delays[1], milliseconds(10));
  EXPECT_EQ(delays[10], milliseconds(5 * 1024));
  EXPECT_EQ(delays[19], seconds(1000));
  EXPECT_EQ(rules.retry("b", clock.monotonic()), milliseconds(5));
  rules.forget("a");
  EXPECT_EQ(rules.retry("a", clock.monotonic()), milliseconds(5));
}

TEST_F(QueueRulesTest, ManyFailuresTogetherAreSlowedDown) {
  Nanos last{0};
  for (int i = 0; i < 150; ++i) last = rules.retry(fmt::format("k{}", i), clock.monotonic());
  EXPECT_EQ(last, seconds(5));  // 50 beyond the burst of 100, at 10 per second
}

TEST_F(QueueRulesTest, AfterShutDownOnlyWhatIsInLineComesOut) {
  add("a");
  rules.addAfter("later", seconds(1), clock.monotonic());
  rules.shutDown();
  add("b");
  clock.advance(seconds(2));
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(take(), "-");
}

TEST_F(QueueRulesTest, TheMostUrgentComesFirst) {
  std::map<std::string, double> urgency{{"much", 5}, {"little", 1}};
  rules = QueueRules(QueueOptions{.urgency = [&](const std::string& key) { return urgency[key]; }});
  for (const char* key : {"a", "little", "b", "much"}) add(key);
  EXPECT_EQ(take(), "much");
  EXPECT_EQ(take(), "little");
  EXPECT_EQ(take(), "a") << "of equals the first";
  urgency["c"] = 0;
  add("c");
  urgency["c"] = 9;
  add("much");
  EXPECT_EQ(take(), "b") << "c was not urgent when it was added, and much is worked on";
  add("c");
  done("much");
  EXPECT_EQ(take(), "c") << "added again, it is asked again";
  EXPECT_EQ(take(), "much");
  EXPECT_EQ(take(), "-");
}

// Against the obvious: whatever happens, no key is with two workers, and none that was added after
// its last take is lost.
RC_GTEST_PROP(QueueRules, NeverTwoWorkersAndNothingLost, ()) {
  double urgency = 0;  // another each time
  QueueRules rules{QueueOptions{.urgency = [&](const std::string&) {
    urgency = urgency < 3 ? urgency + 1 : 0;
    return urgency;
  }}};
  MonotonicTime now{};
  std::set<std::string> working;
  std::set<std::string> wanted;
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100))) {
    const std::string key = "k" + std::to_string(step % 4);
    now += milliseconds(1);
    if (step < 40) {
      rules.add(key, now);
      wanted.insert(key);
    } else if (step < 50) {
      rules.addAfter(key, milliseconds(step % 7), now);
      wanted.insert(key);
    } else if (step < 80) {
      if (const auto taken = rules.take(now)) {
        RC_ASSERT(working.insert(taken->key).second);
        wanted.erase(taken->key);
      }
    } else if (working.erase(key) > 0) {
      rules.done(key, now);
    }
  }
  now += seconds(1);
  for (const std::string& key : working) rules.done(key, now);
  // A delayed add that was met by an earlier take may bring its key once more.
  while (const auto taken = rules.take(now)) wanted.erase(taken->key);
  RC_ASSERT(wanted.empty());
}

TEST(Controller, RetriesFailuresWaitsAndDrains) {
  const SystemClock clock;
  Metrics metrics;
  std::mutex mutex;
  std::map<std::string, int> seen;
  std::set<std::string> running;
  bool overlapped = false;
  Controller controller(
      clock,
      {.name = "test", .workers = 4, .queue = {.retries_per_second = 0}, .metrics = &metrics},
      [&](const std::string& key) {
        int count = 0;
        {
          const std::scoped_lock lock(mutex);
          overlapped = overlapped || !running.insert(key).second;
          count = ++seen[key];
        }
        std::this_thread::yield();
        {
          const std::scoped_lock lock(mutex);
          running.erase(key);
        }
        if (key == "fails" && count < 4) return Reconciled::failed(Error("not yet"));
        if (key == "waits" && count < 3) return Reconciled::again(milliseconds(1));
        return Reconciled::done();
      });
  controller.start();
  controller.queue().add("fails");
  controller.queue().add("waits");
  for (int i = 0; i < 2000; ++i) controller.queue().add("k" + std::to_string(i % 10));
  const auto finished = [&] {
    const std::scoped_lock lock(mutex);
    return seen["fails"] == 4 && seen["waits"] == 3;
  };
  for (int i = 0; i < 30'000 && !finished(); ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(finished());
  for (int i = 0; i < 100; ++i) controller.queue().add("last" + std::to_string(i));
  controller.stop();
  EXPECT_EQ(seen["last99"], 1);  // what is in line at the stop is still done
  EXPECT_FALSE(overlapped);
  const std::string text = metrics.text();
  EXPECT_NE(text.find("controller_runtime_reconcile_errors_total{controller=\"test\"} 3"),
            std::string::npos);
  EXPECT_NE(text.find("workqueue_depth{name=\"test\"} 0"), std::string::npos);
  EXPECT_NE(text.find("workqueue_retries_total{name=\"test\"} 3"), std::string::npos);
  EXPECT_NE(text.find("workqueue_adds_total"), std::string::npos);
  EXPECT_NE(text.find("workqueue_unfinished_work_seconds"), std::string::npos);
  EXPECT_NE(text.find("workqueue_longest_running_processor_seconds"), std::string::npos);
  EXPECT_NE(text.find("workqueue_queue_duration_seconds_bucket"), std::string::npos);
  EXPECT_NE(text.find("workqueue_work_duration_seconds_bucket"), std::string::npos);
}

TEST(Controller, AbandonsWhatIsOnlyInLine) {
  const SystemClock clock;
  std::atomic<int> looks = 0;
  std::atomic<bool> go = false;
  Controller controller(clock, {.name = "test"}, [&](const std::string&) {
    ++looks;
    while (!go) std::this_thread::sleep_for(milliseconds(1));
    return Reconciled::again(milliseconds(1));
  });
  for (int i = 0; i < 100; ++i) controller.queue().add("k" + std::to_string(i));
  EXPECT_EQ(controller.queue().longestInWork(), Nanos(0));
  controller.start();
  while (looks == 0) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_GE(controller.queue().longestInWork(), milliseconds(2));
  std::jthread release([&] {
    while (controller.queue().waiting() > 0) std::this_thread::sleep_for(milliseconds(1));
    go = true;
  });
  controller.abandon();
  EXPECT_EQ(looks, 1) << "what was in hand";
}

// --- leader election ---

// One record for all candidates, with the API's rules about versions.
class FakeLease final : public LeaseStorage {
 public:
  ApiResult<LeaseRecord> read() override {
    if (down) return apiFailure(unreachable());
    if (record.resource_version.empty()) return apiFailure(error(404));
    return record;
  }
  ApiResult<LeaseRecord> create(const LeaseRecord& wanted) override {
    if (down) return apiFailure(unreachable());
    if (!record.resource_version.empty()) return apiFailure(error(409));
    return store(wanted);
  }
  ApiResult<LeaseRecord> update(const LeaseRecord& wanted) override {
    if (down) return apiFailure(unreachable());
    if (wanted.resource_version != record.resource_version) return apiFailure(error(409));
    return store(wanted);
  }
  LeaseRecord record;
  bool down = false;

 private:
  static ApiError error(int code) {
    ApiError result;
    result.code = code;
    return result;
  }
  static ApiError unreachable() {
    ApiError result;
    result.reason = ApiError::kConnect;
    return result;
  }
  LeaseRecord store(LeaseRecord wanted) {
    wanted.resource_version = std::to_string(++version_);
    record = wanted;
    return record;
  }
  int version_ = 0;
};

struct Candidate {
  // Its own clock, as far off as it likes.
  Candidate(FakeLease& lease, std::string name, Nanos skew)
      : clock(WallTime(std::chrono::hours(500'000) + skew)),
        rules(lease, clock, {.name_space = "ns", .name = "l", .identity = std::move(name)}) {}
  SimulatedClock clock;
  LeaderRules rules;
};

TEST(LeaderRules, OneOfTwoLeadsWhateverTheirClocksSay) {
  FakeLease lease;
  Candidate a(lease, "a", std::chrono::hours(5));
  Candidate b(lease, "b", -std::chrono::hours(48));
  const auto pass = [&](Nanos time) {
    a.clock.advance(time);
    b.clock.advance(time);
  };
  EXPECT_EQ(a.rules.attempt(0), seconds(2));
  EXPECT_TRUE(a.rules.leads());
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(b.rules.attempt(0.99), milliseconds(4400));
    EXPECT_FALSE(b.rules.leads());
    pass(seconds(2));
    a.rules.attempt(0);
    EXPECT_TRUE(a.rules.leads());
  }
  EXPECT_EQ(lease.record.transitions, 0);

  // a falls silent. b takes over when it has seen the record stand still for the lease, not before;
  // by then a has long known that it does not lead.
  b.rules.attempt(0);
  pass(seconds(9));
  EXPECT_TRUE(a.rules.leads());
  pass(seconds(1));
  EXPECT_FALSE(a.rules.leads());
  b.rules.attempt(0);
  EXPECT_FALSE(b.rules.leads());
  pass(milliseconds(4999));
  b.rules.attempt(0);
  EXPECT_FALSE(b.rules.leads());
  pass(milliseconds(1));
  b.rules.attempt(0);
  EXPECT_TRUE(b.rules.leads());
  EXPECT_EQ(lease.record.transitions, 1);
  EXPECT_EQ(lease.record.holder, "b");

  // a comes back and stands in line.
  a.rules.attempt(0);
  EXPECT_FALSE(a.rules.leads());
  EXPECT_EQ(a.rules.holder(), "b");
}

TEST(LeaderRules, AReleaseLetsTheNextOneInAtOnce) {
  FakeLease lease;
  Candidate a(lease, "a", Nanos(0));
  Candidate b(lease, "b", Nanos(0));
  a.rules.attempt(0);
  b.rules.attempt(0);
  a.rules.release();
  EXPECT_FALSE(a.rules.leads());
  EXPECT_EQ(lease.record.holder, "");
  EXPECT_EQ(lease.record.duration_seconds, 1);
  b.rules.attempt(0);
  EXPECT_TRUE(b.rules.leads());
}

TEST(LeaderRules, AnUnreachableServerEndsLeadershipAfterTheDeadline) {
  FakeLease lease;
  Candidate a(lease, "a", Nanos(0));
  a.rules.attempt(0);
  lease.down = true;
  a.clock.advance(seconds(2));
  a.rules.attempt(0);
  EXPECT_TRUE(a.rules.leads());
  EXPECT_NE(a.rules.trouble().find("ConnectionFailed"), std::string::npos);
  a.clock.advance(milliseconds(7999));
  EXPECT_TRUE(a.rules.leads());
  a.clock.advance(milliseconds(1));
  EXPECT_FALSE(a.rules.leads());
}

TEST(LeaderRules, ARestartedHolderTakesItsLeaseUpAgain) {
  FakeLease lease;
  Candidate first(lease, "a", Nanos(0));
  first.rules.attempt(0);
  Candidate second(lease, "a", seconds(1));
  second.rules.attempt(0);
  EXPECT_TRUE(second.rules.leads());
  EXPECT_EQ(lease.record.transitions, 0);
}

TEST(LeaderRules, WritesNothingBackThatIsNotKnownExactly) {
  FakeLease lease;
  Candidate candidate(lease, "a", Nanos(0));
  candidate.rules.attempt(0);
  // Another writer has put the lease into a far future, and its count to the end.
  lease.record.acquired = kLatestTime;
  lease.record.renewed = kLatestTime;
  lease.record.transitions = INT32_MAX;
  lease.record.resource_version = "later";
  Candidate again(lease, "a", seconds(1));
  again.rules.attempt(0);
  EXPECT_TRUE(again.rules.leads());
  EXPECT_EQ(lease.record.acquired, again.clock.wall());
  lease.record.holder = "";
  Candidate other(lease, "b", seconds(2));
  other.rules.attempt(0);
  EXPECT_TRUE(other.rules.leads());
  EXPECT_EQ(lease.record.transitions, INT32_MAX);
}

TEST(LeaderRules, RefusesTimesThatCannotWork) {
  const LeaderOptions good{.name_space = "n", .name = "l", .identity = "me"};
  EXPECT_TRUE(LeaderRules::check(good));
  LeaderOptions bad = good;
  bad.identity.clear();
  EXPECT_FALSE(LeaderRules::check(bad));
  bad = good;
  bad.renew_deadline = bad.lease;
  EXPECT_FALSE(LeaderRules::check(bad));
  bad = good;
  bad.retry = seconds(9);
  EXPECT_FALSE(LeaderRules::check(bad));
}

// Any schedule of silences and outages: never two leaders at a time.
RC_GTEST_PROP(LeaderRules, NeverTwoLeaders, ()) {
  FakeLease lease;
  std::vector<std::unique_ptr<Candidate>> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(std::make_unique<Candidate>(lease, std::string(1, static_cast<char>('a' + i)),
                                              std::chrono::hours(i * 7 - 5)));
  }
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100))) {
    lease.down = step % 5 == 0;
    all[static_cast<std::size_t>(step % 3)]->rules.attempt(step / 100.0);
    for (const auto& candidate : all) candidate->clock.advance(milliseconds(step * 60));
    int leaders = 0;
    for (const auto& candidate : all) leaders += candidate->rules.leads() ? 1 : 0;
    RC_ASSERT(leaders <= 1);
  }
}

// --- events ---

class NoteTest : public testing::Test {
 protected:
  static Note note(std::string message, std::string name = "p") {
    return {.about = {"v1", "Pod", "ns", std::move(name), "u1", "1"},
            .type = EventType::kWarning,
            .reason = "Slow",
            .message = std::move(message)};
  }
  NoteDecision decide(const Note& note) {
    return correlator.decide(note, clock.monotonic(), clock.wall());
  }
  SimulatedClock clock;
  NoteCorrelator correlator{1};
};

TEST_F(NoteTest, CountsRepeats) {
  const NoteDecision first = decide(note("m"));
  EXPECT_EQ(first.action, NoteDecision::Do::kCreate);
  const NoteDecision second = decide(note("m"));
  EXPECT_EQ(second.action, NoteDecision::Do::kCount);
  EXPECT_EQ(second.count, 2);
  EXPECT_EQ(second.name, first.name);
  EXPECT_NE(decide(note("other")).name, first.name);
}

TEST_F(NoteTest, CombinesManySimilarOnes) {
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(decide(note("m" + std::to_string(i))).action, NoteDecision::Do::kCreate);
  }
  const NoteDecision combined = decide(note("m9"));
  EXPECT_EQ(combined.message, "(combined from similar events): m9");
  EXPECT_EQ(combined.action, NoteDecision::Do::kCreate);
  const NoteDecision more = decide(note("m10"));
  EXPECT_EQ(more.action, NoteDecision::Do::kCount);
  EXPECT_EQ(more.name, combined.name);
  clock.advance(seconds(601));
  EXPECT_EQ(decide(note("m11")).message, "m11");
}

TEST_F(NoteTest, SilencesAnObjectThatTalksTooMuchAndNoOther) {
  int sent = 0;
  for (int i = 0; i < 100; ++i) sent += decide(note("m")).action != NoteDecision::Do::kDrop ? 1 : 0;
  EXPECT_EQ(sent, 25);
  EXPECT_EQ(decide(note("m", "q")).action, NoteDecision::Do::kCreate);
  clock.advance(seconds(301));
  const NoteDecision later = decide(note("m"));
  EXPECT_EQ(later.action, NoteDecision::Do::kCount);
  EXPECT_EQ(later.count, 101);  // the silenced ones were counted
}

TEST_F(NoteTest, CutsLongMessagesBetweenCharacters) {
  std::string text(1023, 'x');
  text += "\xC3\xA9\xC3\xA9";
  EXPECT_EQ(decide(note(text)).message, std::string(1023, 'x'));
}

TEST_F(NoteTest, ForgetsTheOldest) {
  const std::string first = decide(note("m", "first")).name;
  for (int i = 0; i < 5000; ++i) decide(note("m", "p" + std::to_string(i)));
  EXPECT_NE(decide(note("m", "first")).name, first);
}

}  // namespace
}  // namespace mbcas::kube
