// What users write into objects that the controller watches does not fill its memory: labels,
// annotations and selectors of such objects are not kept, or only so much of them. 120 objects of
// 256 KiB by default, 1,000 with MBCAS_SOAK=1; the bound is the same.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>

#include "test/integration/controller_fixture.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using namespace literals;
using nlohmann::json;

// config/controller/deployment.yaml gives it 256 MiB.
constexpr long kLimitKb = 256 << 10;

long peakOf(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  }
  return -1;
}

// No two alike: equal texts would be kept once.
std::string randomText(std::size_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(length, 'a');
  for (char& c : text) c = static_cast<char>('a' + random() % 26);
  return text;
}

class ControllerMemoryTest : public ControllerTest {
 protected:
  static void each(int count, const std::function<void(int)>& work) {
    std::atomic<int> next = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = next++; i < count; i = next++) work(i);
      });
    }
  }

  void create(const std::string& path, json object, const std::string& name) {
    object["metadata"]["name"] = name;
    const auto made = admin->perform({.method = "POST", .path = path, .body = object.dump()});
    ASSERT_TRUE(made) << path << ": " << made.error().describe();
  }

  // Budgets, autoscalers and ranges with as many annotations as are allowed, and budgets with large
  // selectors.
  void flood(int count, const std::string& where) {
    static const json kBudget =
        json::parse(R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}}}})");
    static const json kScaler = json::parse(
        R"({"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
        "maxReplicas":3}})");
    static const json kRange = json::parse(R"({"spec":{"limits":[{"type":"Container"}]}})");
    each(count, [&](int i) {
      const auto seed = static_cast<std::uint64_t>(++objects);
      json object = i % 4 < 2 ? kBudget : i % 4 == 2 ? kScaler : kRange;
      const std::string path = fmt::format("{}/namespaces/{}/{}",
                                           i % 4 < 2    ? "/apis/policy/v1"
                                           : i % 4 == 2 ? "/apis/autoscaling/v2"
                                                        : "/api/v1",
                                           where,
                                           i % 4 < 2    ? "poddisruptionbudgets"
                                           : i % 4 == 2 ? "horizontalpodautoscalers"
                                                        : "limitranges");
      if (i % 4 == 1) {
        for (int label = 0; label < 2600; ++label) {
          object["spec"]["selector"]["matchLabels"][fmt::format("l{}", label)] =
              randomText(60, seed * 10'000 + static_cast<std::uint64_t>(label));
        }
      } else {
        object["metadata"]["annotations"]["note"] = randomText((256 << 10) - 100, seed);
      }
      create(path, object, fmt::format("o{}", seed));
    });
  }

  std::atomic<int> objects = 0;
};

TEST_F(ControllerMemoryTest, StaysFarBelowItsLimitWhateverUsersWriteIntoObjects) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's memory is not the program's";
  const std::string crowd = ns + "-crowd";
  kubectl("create namespace " + crowd);
  const int count = trials(60, 500);
  flood(count, crowd);

  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
    ::execl(MBCAS_CONTROLLER, "mbcas-controller", "--kubeconfig", plane->kubeconfig().c_str(),
            "--no-leader-elect", "--metrics-bind-address", "0", "--health-probe-bind-address",
            "127.0.0.1:0", "--silence", "24h", "--cooldown", "0s", "--log-level", "error", nullptr);
    ::_exit(127);
  }
  const auto web = makePod("web");
  desire(*web, 500_m);
  expectApplied(*web, 500_m);
  const long after_list = peakOf(pid);
  // The same through its watches.
  flood(count, crowd);
  desire(*web, 700_m);
  expectApplied(*web, 700_m);
  const long after_watch = peakOf(pid);
  fmt::print("{} objects of 256 KiB: peak {} KiB after the lists, {} KiB after as many events\n",
             objects.load(), after_list, after_watch);
  EXPECT_LT(after_watch, kLimitKb / 8);

  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace mbcas::test
