#include "mbcas/agent/allocations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace mbcas::agent {
namespace {

using namespace std::chrono_literals;
using podallocation::PodAllocation;

constexpr MonotonicTime kStart{1000s};

std::shared_ptr<const kube::Pod> pod(const std::string& uid, const std::string& phase = "Running",
                                     const std::string& limit = "200m") {
  auto made = kube::decodeObject<kube::Pod>(fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{0}","namespace":"shop","uid":"{0}"}},
           "spec":{{"containers":[{{"name":"main","resources":{{"limits":{{"cpu":"{2}"}}}}}}]}},
           "status":{{"phase":"{1}"}}}})",
      uid, phase, limit));
  EXPECT_TRUE(made);
  return *made;
}

Allocations::Object object(const std::string& uid, int version, bool judged) {
  auto made = kube::decodeObject<PodAllocation>(fmt::format(
      R"({{"kind":"PodAllocation","apiVersion":"allocation.mbcas.io/v1alpha1",
           "metadata":{{"name":"{0}","namespace":"shop","uid":"of-{0}","resourceVersion":"{1}"}},
           "spec":{{"podName":"{0}","nodeName":"n","desiredCPU":"1"}}{2}}})",
      uid, version, judged ? R"(,"status":{"bounds":{"managed":true,"weight":"1"}})" : ""));
  EXPECT_TRUE(made) << made.error().message();
  return *made;
}

struct Known : Allocations {
  explicit Known(const Options& options = {}) : Allocations(options) {}
  // What is to be read now, as "uid", or "uid!" from etcd.
  std::string taken(MonotonicTime now) {
    const std::optional<Read> read = take(now);
    return read ? read->uid + (read->newest ? "!" : "") : "";
  }
  std::string version(const std::string& uid) const {
    for (const Object& each : list()) {
      if (each->meta.name == uid) return each->meta.resource_version.string();
    }
    return "";
  }
};

// One pod, "a", whose object is known and has bounds.
struct Settled : Known {
  Settled() {
    follow({pod("a")}, kStart);
    EXPECT_EQ(taken(kStart), "a");
    found("a", object("a", 1, true), kStart);
    renewed("", kStart);
  }
};

TEST(Allocations, ReadsWhatIsThereAtTheStart) {
  Known known;
  EXPECT_FALSE(known.complete());
  EXPECT_FALSE(known.next(kStart));
  known.follow({pod("a"), pod("b"), pod("ended", "Succeeded")}, kStart);
  EXPECT_EQ(known.next(kStart), kStart);
  EXPECT_EQ(known.taken(kStart), "a");
  EXPECT_EQ(known.taken(kStart), "b");
  EXPECT_EQ(known.taken(kStart), "");
  known.found("a", object("a", 1, true), kStart);
  EXPECT_FALSE(known.complete());
  known.missing("b", kStart);
  EXPECT_TRUE(known.complete());
  EXPECT_EQ(known.size(), 1u);
  EXPECT_EQ(known.taken(kStart + 1min), "") << "nothing more in calm";
}

TEST(Allocations, NobodyHasMadeTheObjectOfANewPod) {
  Settled known;
  known.follow({pod("a"), pod("b")}, kStart);
  EXPECT_TRUE(known.complete());
  EXPECT_EQ(known.taken(kStart + 1min), "");
}

TEST(Allocations, LooksForTheBoundsOfWhatItMade) {
  Settled known;
  known.follow({pod("a"), pod("b")}, kStart);
  known.wrote("b", object("b", 1, false), kStart);
  EXPECT_EQ(known.taken(kStart), "");
  EXPECT_EQ(known.next(kStart), kStart + 100ms);
  EXPECT_EQ(known.taken(kStart + 100ms), "b");
  known.found("b", object("b", 1, false), kStart + 100ms);
  EXPECT_EQ(known.next(kStart), kStart + 300ms) << "then after twice the time";
  EXPECT_EQ(known.taken(kStart + 300ms), "b");
  known.found("b", object("b", 2, true), kStart + 300ms);
  EXPECT_EQ(known.taken(kStart + 5min), "");
}

TEST(Allocations, DoesNotLookForBoundsForEver) {
  Settled known;
  known.follow({pod("a"), pod("b")}, kStart);
  known.wrote("b", object("b", 1, false), kStart);
  int looks = 0;
  for (MonotonicTime now = kStart; now < kStart + 5min; now += 100ms) {
    if (known.taken(now).empty()) continue;
    ++looks;
    known.found("b", object("b", 1, false), now);
  }
  EXPECT_EQ(looks, 5);
}

TEST(Allocations, ReadsWhatIsMarked) {
  Settled known;
  known.renewed("1:a 2:of-another-time", kStart + 10s);
  EXPECT_EQ(known.taken(kStart + 10s), "a!");
  known.found("a", object("a", 2, true), kStart + 10s);
  EXPECT_EQ(known.version("a"), "2");
  known.renewed("1:a 2:of-another-time", kStart + 20s);
  EXPECT_EQ(known.taken(kStart + 20s), "") << "each mark once";
}

TEST(Allocations, AMarkThatComesDuringAReadLeadsToAnother) {
  Settled known;
  known.renewed("1:a", kStart + 10s);
  EXPECT_EQ(known.taken(kStart + 10s), "a!");
  known.renewed("1:a 2:a", kStart + 10s);
  EXPECT_EQ(known.taken(kStart + 10s), "") << "one at a time";
  known.found("a", object("a", 2, true), kStart + 10s);
  EXPECT_EQ(known.taken(kStart + 10s), "a!");
}

TEST(Allocations, ReadsEverythingWhenMarksMayHaveBeenMissed) {
  Settled known;
  known.renewed("", kStart + 20s);
  EXPECT_EQ(known.taken(kStart + 60s), "");
  known.renewed("", kStart + 60s);
  EXPECT_EQ(known.taken(kStart + 70s), "a!");
  known.found("a", object("a", 2, true), kStart + 70s);
  known.renewed("1:*", kStart + 80s);
  EXPECT_EQ(known.taken(kStart + 90s), "a!");
}

TEST(Allocations, ReadsAgainNowAndThen) {
  Settled known;
  EXPECT_EQ(known.taken(kStart + 10min), "");
  EXPECT_EQ(known.taken(kStart + 20min), "a");
}

TEST(Allocations, OlderAnswersChangeNothing) {
  Settled known;
  known.renewed("1:a", kStart + 10s);
  EXPECT_EQ(known.taken(kStart + 10s), "a!");
  known.wrote("a", object("a", 10, true), kStart + 10s);
  known.found("a", object("a", 9, true), kStart + 10s);
  EXPECT_EQ(known.version("a"), "10");
}

TEST(Allocations, ADeletedObjectIsForgotten) {
  Settled known;
  known.renewed("1:a", kStart + 10s);
  EXPECT_EQ(known.taken(kStart + 10s), "a!");
  known.missing("a", kStart + 10s);
  EXPECT_EQ(known.size(), 0u);
  EXPECT_TRUE(known.complete());
}

TEST(Allocations, TheCacheOfAServerMayNotHaveItYet) {
  Settled known;
  known.follow({pod("a"), pod("b")}, kStart);
  known.wrote("b", object("b", 1, false), kStart);
  EXPECT_EQ(known.taken(kStart + 200ms), "b");
  known.missing("b", kStart + 200ms);
  EXPECT_EQ(known.size(), 2u);
  EXPECT_EQ(known.taken(kStart + 200ms), "b!") << "etcd has it";
}

TEST(Allocations, AWriteThatEndsDuringAReadIsNotUndone) {
  Known known;
  known.follow({pod("a")}, kStart);
  EXPECT_EQ(known.taken(kStart), "a");
  known.wrote("a", object("a", 1, true), kStart);
  known.missing("a", kStart);
  EXPECT_EQ(known.taken(kStart), "a!");
  known.found("a", object("a", 1, true), kStart);
  EXPECT_EQ(known.size(), 1u);
}

TEST(Allocations, FailuresBackOff) {
  Known known;
  known.follow({pod("a"), pod("b")}, kStart);
  EXPECT_EQ(known.taken(kStart), "a");
  known.failed("a", 5s, kStart);
  EXPECT_EQ(known.taken(kStart + 4s), "") << "the server asked for time";
  EXPECT_NE(known.taken(kStart + 6s), "");
  EXPECT_FALSE(known.complete());
}

TEST(Allocations, OfAnEndedPodNothingIsKept) {
  Settled known;
  known.renewed("1:a", kStart + 10s);
  EXPECT_EQ(known.taken(kStart + 10s), "a!");
  known.follow({}, kStart + 10s);
  known.found("a", object("a", 2, true), kStart + 10s);
  known.wrote("a", object("a", 3, true), kStart + 10s);
  EXPECT_EQ(known.size(), 0u);
  EXPECT_FALSE(known.next(kStart + 10s));
}

TEST(Allocations, APodWithNewLimitsIsShownWithItsObject) {
  Settled known;
  const auto before = pod("a");
  EXPECT_EQ(known.follow({before}, kStart).front(), before) << "the limits are the same";
  const auto raised = pod("a", "Running", "900m");
  EXPECT_EQ(known.follow({raised}, kStart).front(), before);
  EXPECT_EQ(known.follow({raised}, kStart).front(), before);
  EXPECT_EQ(known.taken(kStart), "a!");
  EXPECT_EQ(known.follow({raised}, kStart).front(), before) << "it has not been read yet";
  known.found("a", object("a", 2, true), kStart);
  EXPECT_EQ(known.follow({raised}, kStart).front(), raised);
  EXPECT_EQ(known.taken(kStart), "") << "it was read once";
}

TEST(Allocations, LimitsThatChangeDuringAReadLeadToAnother) {
  Settled known;
  const auto before = pod("a");
  known.follow({before}, kStart);
  known.follow({pod("a", "Running", "900m")}, kStart);
  EXPECT_EQ(known.taken(kStart), "a!");
  const auto again = pod("a", "Running", "1200m");
  EXPECT_EQ(known.follow({again}, kStart).front(), before);
  known.found("a", object("a", 2, true), kStart);
  EXPECT_EQ(known.follow({again}, kStart).front(), before);
  EXPECT_EQ(known.taken(kStart), "a!");
  known.failed("a", std::nullopt, kStart);
  EXPECT_EQ(known.follow({again}, kStart).front(), before);
  EXPECT_EQ(known.taken(kStart + 3s), "a!") << "it is tried until it has been read";
  known.missing("a", kStart + 3s);
  EXPECT_EQ(known.follow({again}, kStart).front(), again) << "nothing says anything else";
}

// Whatever comes and goes: there are never more reads under way than allowed, never two of one
// object, and when everything has been answered the agent knows what the server has.
RC_GTEST_PROP(AllocationsProperty, EndsWithWhatTheServerHas, ()) {
  Known known({.in_flight = 2, .seed = *rc::gen::arbitrary<std::uint64_t>()});
  std::map<std::string, int> server;  // version by UID
  std::set<std::string> under_way;
  std::set<std::string> pods;
  std::string marks;
  int version = 0;
  int mark = 0;
  MonotonicTime now = kStart;
  const auto follow = [&] {
    std::vector<std::shared_ptr<const kube::Pod>> list;
    for (const std::string& uid : pods) list.push_back(pod(uid));
    known.follow(list, now);
    std::erase_if(under_way, [&](const std::string& uid) { return !pods.contains(uid); });
  };
  const auto answer = [&](const std::string uid) {  // NOLINT(performance-unnecessary-value-param)
    under_way.erase(uid);
    if (const auto has = server.find(uid); has != server.end()) {
      known.found(uid, object(uid, has->second, true), now);
    } else {
      known.missing(uid, now);
    }
  };
  follow();
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000));
  for (const int step : steps) {
    const std::string uid(1, static_cast<char>('a' + step % 4));
    now += std::chrono::milliseconds(step);
    switch (step / 100) {
      case 0:
      case 1:
        pods.insert(uid);
        follow();
        break;
      case 2:
        pods.erase(uid);
        server.erase(uid);
        follow();
        break;
      case 3:
      case 4:  // the agent writes
        if (!pods.contains(uid)) break;
        server[uid] = ++version;
        known.wrote(uid, object(uid, version, true), now);
        break;
      case 5:  // the controller changes it, and marks it
        if (!server.contains(uid)) break;
        server[uid] = ++version;
        marks += fmt::format(" {}:{}", ++mark, uid);
        break;
      case 6:
        known.renewed(marks, now);
        break;
      case 7:
        if (!under_way.empty()) answer(*under_way.begin());
        break;
      case 8:
        if (!under_way.empty()) {
          known.failed(*under_way.begin(), std::nullopt, now);
          under_way.erase(under_way.begin());
        }
        break;
      default:
        if (const auto read = known.take(now)) {
          RC_ASSERT(under_way.insert(read->uid).second);
          RC_ASSERT(under_way.size() <= 2u);
          RC_ASSERT(pods.contains(read->uid));
        }
    }
  }
  now += 2min;  // longer than any wait after failures
  known.renewed(marks, now);
  now += 20s;
  for (int i = 0; i < 100; ++i) {
    while (!under_way.empty()) answer(*under_way.begin());
    if (const auto read = known.take(now)) under_way.insert(read->uid);
  }
  RC_ASSERT(known.complete());
  for (const std::string& uid : pods) {
    const auto has = server.find(uid);
    RC_ASSERT(known.version(uid) == (has == server.end() ? "" : std::to_string(has->second)));
  }
}

}  // namespace
}  // namespace mbcas::agent
