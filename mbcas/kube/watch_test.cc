// The state machine of a watch, and the store behind it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>
#include <set>

#include "mbcas/kube/store.h"
#include "mbcas/kube/types.h"
#include "mbcas/kube/watch_machine.h"

namespace mbcas::kube {
namespace {

using namespace watch_input;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Do = WatchStep::Do;

ApiError answered(int code, std::string reason = "") {
  ApiError error;
  error.code = code;
  error.reason = std::move(reason);
  return error;
}
ApiError broken() {
  ApiError error;
  error.reason = ApiError::kBroken;
  return error;
}

class WatchMachineTest : public testing::Test {
 protected:
  WatchStep on(const WatchInput& input, double chance = 0) {
    return machine.on(input, now, chance);
  }
  void pass(Nanos time) { now += time; }
  // Through a streaming list to kWatching at version 100.
  void reachWatching() {
    on(Start{});
    on(Progress{"90"});
    on(Progress{"100", true});
    ASSERT_EQ(machine.phase(), WatchPhase::kWatching);
  }

  WatchTuning tuning;
  WatchMachine machine{tuning};
  MonotonicTime now = MonotonicTime(std::chrono::hours(1));
};

TEST_F(WatchMachineTest, StreamsTheListAndGoesOnWatching) {
  const WatchStep start = on(Start{});
  EXPECT_EQ(start.action, Do::kStreamList);
  EXPECT_EQ(start.resource_version, "");
  EXPECT_FALSE(on(Progress{"90"}).complete);
  const WatchStep end = on(Progress{"100", true});
  EXPECT_TRUE(end.complete);
  EXPECT_EQ(end.action, Do::kGoOn);
  EXPECT_EQ(machine.phase(), WatchPhase::kWatching);
  EXPECT_EQ(machine.resourceVersion(), "100");
  on(Progress{"101"});
  EXPECT_EQ(machine.resourceVersion(), "101");
}

TEST_F(WatchMachineTest, ListsWhereTheServerDoesNotStream) {
  on(Start{});
  const WatchStep list = on(Failed{answered(422, "Invalid")});
  EXPECT_EQ(list.action, Do::kList);
  EXPECT_EQ(list.resource_version, "0");  // any version will do for the first
  const WatchStep page = on(PageEnded{"50", "token"});
  EXPECT_EQ(page.action, Do::kListNext);
  EXPECT_EQ(page.next, "token");
  const WatchStep end = on(PageEnded{"50", ""});
  EXPECT_TRUE(end.complete);
  EXPECT_EQ(end.action, Do::kWatch);
  EXPECT_EQ(end.resource_version, "50");
  // And never tries again.
  on(Progress{"51"});
  on(Failed{answered(410, "Expired")});
  const WatchStep again = on(WaitOver{});
  EXPECT_EQ(again.action, Do::kList);
  EXPECT_EQ(again.resource_version, "51");
}

TEST_F(WatchMachineTest, AStreamingListThatBreaksIsFollowedByAPlainOne) {
  on(Start{});
  EXPECT_EQ(on(Failed{broken()}).action, Do::kWait);
  EXPECT_EQ(machine.phase(), WatchPhase::kWaitingToList);
  EXPECT_EQ(on(WaitOver{}).action, Do::kList);
  on(PageEnded{"7", ""});
  on(Failed{answered(410)});
  EXPECT_EQ(on(WaitOver{}).action, Do::kStreamList);
}

TEST_F(WatchMachineTest, AStreamingListThatClosesEarlyHasFailed) {
  on(Start{});
  on(Progress{"90"});
  EXPECT_EQ(on(Closed{}).action, Do::kWait);
  EXPECT_EQ(machine.phase(), WatchPhase::kWaitingToList);
}

TEST_F(WatchMachineTest, ResumesAfterANormalClose) {
  reachWatching();
  on(Progress{"120"});
  const WatchStep step = on(Closed{});
  EXPECT_EQ(step.action, Do::kWatch);
  EXPECT_EQ(step.resource_version, "120");
  EXPECT_FALSE(step.complete);
  pass(seconds(5));
  EXPECT_EQ(on(Closed{}).action, Do::kWatch);  // no event, but it lasted
  EXPECT_EQ(on(Closed{}).action, Do::kWait);   // neither
  EXPECT_EQ(machine.phase(), WatchPhase::kWaitingToWatch);
}

TEST_F(WatchMachineTest, ResumesAfterFailuresWithoutListing) {
  reachWatching();
  for (const ApiError& error :
       {broken(), answered(429), answered(500), answered(503), answered(401), answered(403)}) {
    EXPECT_EQ(on(Failed{error}).action, Do::kWait);
    const WatchStep step = on(WaitOver{});
    EXPECT_EQ(step.action, Do::kWatch);
    EXPECT_EQ(step.resource_version, "100");
  }
}

TEST_F(WatchMachineTest, ListsAgainWhenHistoryIsGone) {
  reachWatching();
  EXPECT_EQ(on(Failed{answered(410, "Expired")}).action, Do::kWait);
  const WatchStep step = on(WaitOver{});
  EXPECT_EQ(step.action, Do::kStreamList);
  EXPECT_EQ(step.resource_version, "100");  // not older than what we know
}

TEST_F(WatchMachineTest, ListsTheNewestWhenTheServerHasLostHistory) {
  reachWatching();
  on(Failed{answered(504, "Timeout")});
  EXPECT_EQ(machine.phase(), WatchPhase::kWaitingToWatch);
  on(WaitOver{});
  ApiError too_large = answered(504, "Timeout");
  too_large.message = "Too large resource version: 100, current: 7";
  EXPECT_EQ(on(Failed{too_large}).action, Do::kWait);
  EXPECT_EQ(on(WaitOver{}).resource_version, "");
}

TEST_F(WatchMachineTest, ListsRoundAnEventThatCannotBeRead) {
  reachWatching();
  ApiError malformed;
  malformed.reason = ApiError::kMalformed;
  on(Progress{"110"});
  EXPECT_EQ(on(Failed{malformed}).action, Do::kWait);
  const WatchStep resumed = on(WaitOver{});
  EXPECT_EQ(resumed.action, Do::kWatch) << "it may have been cut off";
  EXPECT_EQ(resumed.resource_version, "110");
  EXPECT_EQ(on(Failed{malformed}).action, Do::kWait) << "the same again";
  const WatchStep list = on(WaitOver{});
  EXPECT_EQ(list.action, Do::kStreamList);
  EXPECT_EQ(list.resource_version, "110");
}

TEST_F(WatchMachineTest, AnExpiredPageStartsOverFromTheNewest) {
  on(Start{});
  on(Failed{answered(400)});
  on(PageEnded{"50", "token"});
  const WatchStep step = on(Failed{answered(410, "Expired")});
  EXPECT_EQ(step.action, Do::kList);
  EXPECT_EQ(step.resource_version, "");
  // If even that has expired, something is odd: do not spin.
  EXPECT_EQ(on(Failed{answered(410, "Expired")}).action, Do::kWait);
}

TEST_F(WatchMachineTest, WaitsLongerEachTimeUpToAMaximumAndForgets) {
  reachWatching();
  std::vector<Nanos> delays;
  for (int i = 0; i < 8; ++i) {
    delays.push_back(on(Failed{broken()}).delay);
    on(WaitOver{});
  }
  EXPECT_EQ(delays, (std::vector<Nanos>{milliseconds(800), milliseconds(1600), milliseconds(3200),
                                        milliseconds(6400), milliseconds(12800),
                                        milliseconds(25600), seconds(30), seconds(30)}));
  EXPECT_EQ(on(Failed{broken()}, 0.5).delay, seconds(45));
  on(WaitOver{});
  pass(minutes(3));
  EXPECT_EQ(on(Failed{broken()}).delay, milliseconds(800));
}

TEST_F(WatchMachineTest, DoesNotWaitForAServerThatIsBack) {
  reachWatching();
  for (int i = 0; i < 6; ++i) {
    on(Failed{broken()});
    on(WaitOver{});
  }
  EXPECT_EQ(on(Failed{answered(429)}).delay, milliseconds(800));
  on(WaitOver{});
  EXPECT_EQ(on(Failed{answered(410, "Expired")}).delay, milliseconds(1600)) << "it is no success";
}

TEST_F(WatchMachineTest, StopsFromAnywhereAndThenHearsNothing) {
  reachWatching();
  EXPECT_EQ(on(Stop{}).action, Do::kStop);
  EXPECT_EQ(on(Failed{broken()}).action, Do::kGoOn);
  EXPECT_EQ(on(WaitOver{}).action, Do::kGoOn);
  EXPECT_EQ(on(Closed{}).action, Do::kGoOn);
  EXPECT_EQ(machine.phase(), WatchPhase::kStopped);
}

// --- the store ---

ObjectPtr pod(std::string_view name, std::string_view uid, int version,
              std::string_view node = "n1") {
  std::string json = fmt::format(
      R"({{"metadata":{{"namespace":"ns","name":"{}","uid":"{}","resourceVersion":"{}"}},)"
      R"("spec":{{"nodeName":"{}"}}}})",
      name, uid, version, node);
  Decoder decoder;
  return *decoder.decode(Pod::kind(), json);
}

std::string told(const std::vector<Change>& changes) {
  std::vector<std::string> lines;
  for (const Change& change : changes) {
    const auto text = [](const ObjectPtr& object) {
      return object ? fmt::format("{}@{}", object->meta.uid.view(),
                                  object->meta.resource_version.view())
                    : std::string("-");
    };
    lines.push_back(fmt::format("{}>{}{}", text(change.before), text(change.after),
                                change.noticed_late ? " late" : ""));
  }
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : ", ") + line;
  return all;
}

TEST(Store, TellsWhatChanged) {
  Store store;
  EXPECT_EQ(told(store.put(pod("a", "u1", 1))), "->u1@1");
  EXPECT_EQ(told(store.put(pod("a", "u1", 2))), "u1@1>u1@2");
  EXPECT_EQ(store.find("ns", "a")->meta.resource_version, "2");
  EXPECT_EQ(store.find("ns", "b"), nullptr);
  EXPECT_EQ(told(store.erase(pod("a", "u1", 3))), "u1@3>-");
  EXPECT_EQ(told(store.erase(pod("a", "u1", 3))), "");
  EXPECT_EQ(store.size(), 0u);
}

TEST(Store, ANewUidUnderAnOldNameIsANewObject) {
  Store store;
  store.put(pod("a", "u1", 1));
  EXPECT_EQ(told(store.put(pod("a", "u2", 5))), "u1@1>-, ->u2@5");
  ObjectSet next;
  next.insert(pod("a", "u3", 9));
  EXPECT_EQ(told(store.replace(std::move(next))), "u2@5>- late, ->u3@9");
}

TEST(Store, AReplacementNoticesWhatWasMissed) {
  Store store;
  store.put(pod("gone", "u1", 1));
  store.put(pod("same", "u2", 2));
  const ObjectPtr same = store.find("ns", "same");
  ObjectSet next;
  next.insert(pod("same", "u2", 2));
  next.insert(pod("new", "u4", 4));
  const std::string changes = told(store.replace(std::move(next)));
  EXPECT_EQ(changes, "u1@1>- late, ->u4@4");
  EXPECT_EQ(store.find("ns", "same"), same);  // the very object
  EXPECT_EQ(store.find("ns", "gone"), nullptr);
}

// So that a second list does not take the memory of all objects a second time.
TEST(Store, KnowsWhatHasNotChanged) {
  Store store;
  const ObjectPtr object = pod("a", "u1", 1);
  store.put(object);
  EXPECT_EQ(store.known(pod("a", "u1", 1)), object);
  const ObjectPtr changed = pod("a", "u1", 2);
  EXPECT_EQ(store.known(changed), changed);
  const ObjectPtr replaced = pod("a", "u2", 1);
  EXPECT_EQ(store.known(replaced), replaced);
  const ObjectPtr other = pod("b", "u3", 1);
  EXPECT_EQ(store.known(other), other);
}

TEST(Store, AnObjectMayHaveSeveralValuesInAnIndex) {
  Store store;
  store.addIndex("letter", [](const Object& object) {
    std::vector<std::string> values;
    for (const char letter : object.meta.name.view()) values.emplace_back(1, letter);
    return values;
  });
  const auto names = [&](const std::string& letter) {
    std::set<std::string> found;
    for (const ObjectPtr& object : store.byIndex("letter", letter)) {
      EXPECT_TRUE(found.insert(object->meta.name.string()).second) << "twice";
    }
    return found;
  };
  using Names = std::set<std::string>;
  store.put(pod("aab", "u1", 1));
  store.put(pod("bc", "u2", 2));
  EXPECT_EQ(names("a"), Names({"aab"}));
  EXPECT_EQ(names("b"), Names({"aab", "bc"}));
  store.erase(pod("aab", "u1", 3));
  EXPECT_EQ(names("a"), Names());
  EXPECT_EQ(names("b"), Names({"bc"}));
}

TEST(Store, IndexesFollowEveryChange) {
  Store store;
  store.addIndex("node", [](const Object& object) {
    return std::vector<std::string>{static_cast<const Pod&>(object).node.string()};
  });
  store.put(pod("a", "u1", 1, "n1"));
  store.put(pod("b", "u2", 2, "n1"));
  EXPECT_EQ(store.byIndex("node", "n1").size(), 2u);
  store.put(pod("a", "u1", 3, "n2"));
  EXPECT_EQ(store.byIndex("node", "n1").size(), 1u);
  EXPECT_EQ(store.byIndex("node", "n2").size(), 1u);
  store.erase(pod("a", "u1", 4, "n2"));
  EXPECT_TRUE(store.byIndex("node", "n2").empty());
  ObjectSet next;
  next.insert(pod("c", "u3", 5, "n3"));
  store.replace(std::move(next));
  EXPECT_TRUE(store.byIndex("node", "n1").empty());
  EXPECT_EQ(store.byIndex("node", "n3").size(), 1u);
  EXPECT_TRUE(store.byIndex("other", "n3").empty());
}

// Handlers that only apply the changes they are told end with the same set as the store.
RC_GTEST_PROP(Store, ChangesAddUpToTheStore, ()) {
  Store store;
  std::map<std::string, std::string> mirror;  // name to uid@version
  int version = 0;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000));
  for (const int step : steps) {
    const std::string name(1, static_cast<char>('a' + step % 5));
    const std::string uid = "u" + std::to_string(step % 3);
    std::vector<Change> changes;
    if (step % 10 == 0) {
      ObjectSet next;
      for (int i = 0; i < step % 4; ++i) {
        next.insert(pod(std::string(1, static_cast<char>('a' + i)), uid, ++version));
      }
      changes = store.replace(std::move(next));
    } else if (step % 4 == 0) {
      changes = store.erase(pod(name, uid, ++version));
    } else {
      changes = store.put(pod(name, uid, ++version));
    }
    for (const Change& change : changes) {
      RC_ASSERT(change.before || change.after);
      if (change.before && change.after)
        RC_ASSERT(change.before->meta.uid == change.after->meta.uid);
      if (!change.after) {
        RC_ASSERT(mirror.erase(change.before->meta.name.string()) == 1u);
      } else {
        if (!change.before) RC_ASSERT(!mirror.contains(change.after->meta.name.string()));
        mirror[change.after->meta.name.string()] = change.after->meta.resource_version.string();
      }
    }
  }
  RC_ASSERT(mirror.size() == store.size());
  for (const ObjectPtr& object : store.list()) {
    RC_ASSERT(mirror.at(object->meta.name.string()) == object->meta.resource_version.view());
  }
}

}  // namespace
}  // namespace mbcas::kube
