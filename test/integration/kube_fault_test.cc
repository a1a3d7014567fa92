// The watch cache behind a proxy that harms its connections: whatever happens, it ends up equal to
// the server. By default a few dozen random schedules; MBCAS_SOAK=1 runs a thousand.
#include <cstdlib>
#include <map>
#include <random>

#include "mbcas/kube/informer.h"
#include "test/integration/kube_fixture.h"
#include "test/support/fault_proxy.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using namespace kube;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Random = std::mt19937_64;

constexpr int kSchedules = 40;
constexpr int kSoakSchedules = 1000;

int pick(Random& random, int below) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(below));
}

// "name": "uid resourceVersion value"
using State = std::map<std::string, std::string>;

void add(const ConfigMap& map, State& state) {
  state[map.meta.name.string()] =
      fmt::format("{} {} {}", map.meta.uid.view(), map.meta.resource_version.view(),
                  find(map.data, "v").value_or(""));
}

class KubeFaultTest : public KubeTest {
 protected:
  State onServer() {
    State state;
    const auto list = admin->list<ConfigMap>({.name_space = ns});
    EXPECT_TRUE(list) << list.error().describe();
    for (const auto& map : list->items) add(*map, state);
    return state;
  }
  static State inCache(const Informer<ConfigMap>& maps) {
    State state;
    for (const auto& map : maps.list()) add(*map, state);
    return state;
  }

  // One random change on the server.
  void change(Random& random) {
    const std::string name = "c" + std::to_string(pick(random, 6));
    const std::string value = std::to_string(random() % 1000);
    switch (pick(random, 4)) {
      case 0:
        (void)admin->remove<ConfigMap>(ns, name);
        break;
      case 1:  // delete and recreate under the same name
        (void)admin->remove<ConfigMap>(ns, name);
        (void)admin->create<ConfigMap>(ns, configMapBody(name, value));
        break;
      default:
        if (!admin->create<ConfigMap>(ns, configMapBody(name, value))) {
          (void)admin->patch<ConfigMap>(ns, name, PatchType::kMerge,
                                        fmt::format(R"({{"data":{{"v":"{}"}}}})", value));
        }
    }
  }

  WatchOptions options(Random& random) {
    WatchOptions options{.name_space = ns, .page = 2};
    options.tuning.first_delay = milliseconds(2);
    options.tuning.max_delay = milliseconds(20);
    options.tuning.shortest_watch = milliseconds(1);
    options.tuning.streaming_list = pick(random, 2) == 0;
    options.idle_timeout = milliseconds(500);  // a busy server must still be quicker
    options.seed = random() | 1;
    return options;
  }

  // Harms the first connections as planned while the server changes, then lets go and compares.
  void runSchedule(FaultProxy& proxy, std::vector<Fault> faults, Random& random, bool protobuf) {
    Kind kind = ConfigMap::kind();
    if (!protobuf) kind.protobuf = nullptr;
    // Bytes that are changed on the way are TLS's to notice: JSON often shows it, protobuf cannot,
    // as any text may stand where a text is expected.
    for (Fault& fault : faults) {
      if (protobuf && fault.kind == Fault::Kind::kGarbage) fault.kind = Fault::Kind::kTruncate;
    }
    proxy.plan([faults](int connection) {
      return connection < static_cast<int>(faults.size())
                 ? faults[static_cast<std::size_t>(connection)]
                 : Fault{};
    });
    ClientConfig behind = config;
    behind.server = proxy.url();
    Client through(loop, behind, clock, {.max_retries = 2});
    Informer<ConfigMap> maps(through, options(random), kind);
    State told;  // what a handler that believes every change would hold; the loop's until stop()
    maps.onChange([&](const TypedChange<ConfigMap>& change) {
      if (change.before && change.after) {
        EXPECT_EQ(change.before->meta.uid, change.after->meta.uid);
      }
      if (!change.before) {
        EXPECT_FALSE(told.contains(change.after->meta.name.string())) << "added twice";
      }
      if (change.after) {
        add(*change.after, told);
      } else {
        EXPECT_EQ(told.erase(change.before->meta.name.string()), 1u) << "deleted twice";
      }
    });
    maps.start();
    const int changes = pick(random, 8);
    for (int i = 0; i < changes; ++i) change(random);
    ASSERT_TRUE(maps.waitForSync(seconds(60)));
    for (int i = 0; i < 2; ++i) change(random);
    // All faults were met, and what remains is a cache that follows.
    const State expected = onServer();
    ASSERT_TRUE(eventually([&] { return inCache(maps) == expected; }))
        << "after " << proxy.connections() << " connections";
    maps.stop();
    EXPECT_EQ(told, expected);
  }
};

Fault randomFault(Random& random) {
  Fault fault;
  fault.kind = static_cast<Fault::Kind>(pick(random, 8));
  // The head of an answer is some 300 bytes, an event some 400.
  fault.after = static_cast<std::size_t>(pick(random, 3000));
  fault.delay = milliseconds(pick(random, 20));
  const int codes[] = {429, 500, 503, 504, 401, 410};
  fault.status = codes[pick(random, 6)];
  fault.retry_after = fault.status == 429 ? 0 : pick(random, 2) - 1;
  return fault;
}

TEST_F(KubeFaultTest, EachKindOfFault) {
  FaultProxy proxy(port());
  Random random(1);
  for (int i = 0; i < 4; ++i) change(random);
  const auto all = [&](const Fault& fault) { return std::vector<Fault>(4, fault); };
  const std::map<std::string, Fault> faults = {
      {"reset at once", {.kind = Fault::Kind::kRefuse}},
      {"cut in the head", {.kind = Fault::Kind::kCut, .after = 40}},
      {"cut mid-event", {.kind = Fault::Kind::kCut, .after = 700}},
      {"half-open from the start", {.kind = Fault::Kind::kHalfOpen, .after = 0}},
      {"half-open mid-event", {.kind = Fault::Kind::kHalfOpen, .after = 700}},
      {"delayed", {.kind = Fault::Kind::kDelay, .delay = milliseconds(50)}},
      {"truncated chunk", {.kind = Fault::Kind::kTruncate, .after = 700}},
      {"garbage", {.kind = Fault::Kind::kGarbage, .after = 700}},
      {"429 with Retry-After", {.kind = Fault::Kind::kStatus, .status = 429, .retry_after = 1}},
      {"500", {.kind = Fault::Kind::kStatus, .status = 500}},
      {"503", {.kind = Fault::Kind::kStatus, .status = 503}},
      {"410", {.kind = Fault::Kind::kStatus, .status = 410}},
  };
  for (const auto& [name, fault] : faults) {
    for (const bool protobuf : {false, true}) {
      SCOPED_TRACE(name + (protobuf ? ", protobuf" : ", JSON"));
      runSchedule(proxy, all(fault), random, protobuf);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(KubeFaultTest, RandomSchedules) {
  const char* only = std::getenv("MBCAS_FAULT_SEED");  // to repeat a failure
  FaultProxy proxy(port());
  const int count = trials(kSchedules, kSoakSchedules);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed =
        only != nullptr ? std::strtoull(only, nullptr, 10) : 1000 + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(fmt::format("MBCAS_FAULT_SEED={}", seed));
    Random random(seed);
    std::vector<Fault> faults(static_cast<std::size_t>(pick(random, 6)));
    for (Fault& fault : faults) fault = randomFault(random);
    runSchedule(proxy, faults, random, pick(random, 2) == 0);
    if (HasFatalFailure() || only != nullptr) return;
  }
}

// A write behind 429s arrives once, and the caller hardly notices.
TEST_F(KubeFaultTest, WritesWaitAsTheyAreTold) {
  FaultProxy proxy(port());
  proxy.plan([](int connection) {
    return connection < 2 ? Fault{.kind = Fault::Kind::kStatus, .status = 429, .retry_after = 0}
                          : Fault{};
  });
  ClientConfig behind = config;
  behind.server = proxy.url();
  Client through(loop, behind, clock);
  const auto created = through.create<ConfigMap>(ns, configMapBody("once", "1"));
  EXPECT_TRUE(created) << created.error().describe();
  EXPECT_EQ(proxy.connections(), 3);
}

}  // namespace
}  // namespace mbcas::test
