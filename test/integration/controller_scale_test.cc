// How much a controller costs with many pods: from its start until every PodAllocation has bounds
// and a phase, and for a change of each. 200 pods by default, 10,000 with MBCAS_SOAK=1; the numbers
// are printed, none is judged but that everything ends right.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "mbcas/kube/informer.h"
#include "test/integration/controller_fixture.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

struct Usage {
  double cpu_seconds = 0;
  long resident_kb = 0;
};

Usage usageOf(pid_t pid) {
  Usage usage;
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string word;
  std::getline(stat, word, ')');
  for (int field = 3; field <= 15 && stat >> word; ++field) {
    if (field == 14 || field == 15) {
      usage.cpu_seconds += std::stod(word) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }
  }
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) usage.resident_kb = std::stol(line.substr(6));
  }
  return usage;
}

class ControllerScaleTest : public ControllerTest {
 protected:
};

TEST_F(ControllerScaleTest, ManyPods) {
  const int count = trials(200, 10'000);
  const auto patience = std::chrono::seconds(soaking() ? 1800 : 600);
  // One node for all of them: a small one would be raised in turns.
  constexpr const char* kLarge = "large";
  makeNode(kLarge, "100000");
  kubelet.reset();
  kubelet =
      std::make_unique<FakeKubelet>(*admin, FakeKubelet::Options{.node = kLarge, .workers = 8});
  std::vector<std::shared_ptr<const Pod>> pods(static_cast<std::size_t>(count));
  each(count, [&](int i) {
    pods[static_cast<std::size_t>(i)] = createPod(
        podBody(fmt::format("p{}", i), "100m", "200m", fmt::format(R"("nodeName":"{}",)", kLarge)));
  });
  kube::Informer<Pod> running(*admin, {.name_space = ns});
  std::atomic<int> started = 0;
  running.onChange([&](const auto& change) {
    const auto runs = [](const auto& pod) { return pod && pod->phase == kube::PodPhase::kRunning; };
    started += static_cast<int>(runs(change.after)) - static_cast<int>(runs(change.before));
  });
  running.start();
  ASSERT_TRUE(eventually([&] { return started == count; }, patience)) << started;
  const auto desireAll = [&](Millicores cpu) {
    each(count, [&](int i) { desire(*pods[static_cast<std::size_t>(i)], cpu); });
  };
  desireAll(200_m);

  // How many say that they have it.
  kube::Informer<PodAllocation> allocations(*admin, {.name_space = ns});
  std::atomic<std::int64_t> wanted = 200;
  std::atomic<int> done = 0;
  allocations.onChange([&](const auto& change) {
    const auto has = [&](const auto& allocation, std::int64_t cpu) {
      return allocation && allocation->phase == Phase::kApplied &&
             allocation->bounds() != nullptr && allocation->applied == Millicores(cpu);
    };
    const std::int64_t cpu = wanted;
    done += static_cast<int>(has(change.after, cpu)) - static_cast<int>(has(change.before, cpu));
  });
  allocations.start();
  ASSERT_TRUE(allocations.waitForSync(patience));

  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [](auto since) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  };
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
    ::execl(MBCAS_CONTROLLER, "mbcas-controller", "--kubeconfig", plane->kubeconfig().c_str(),
            "--no-leader-elect", "--metrics-bind-address", "0", "--health-probe-bind-address",
            "127.0.0.1:0", "--silence", "24h", "--cooldown", "0s", "--log-level", "error", nullptr);
    ::_exit(127);
  }
  EXPECT_TRUE(eventually([&] { return done == count; }, patience)) << done;
  const Usage cold = usageOf(pid);
  fmt::print("{} pods, from start to all reconciled: {:.2f} s, CPU {:.2f} s, resident {} KiB\n",
             count, seconds(begin), cold.cpu_seconds, cold.resident_kb);

  wanted = 400;
  done = 0;
  const auto changing = std::chrono::steady_clock::now();
  desireAll(400_m);
  EXPECT_TRUE(eventually([&] { return done == count; }, patience)) << done;
  const Usage changed = usageOf(pid);
  fmt::print(
      "{} raises, from the first wish to the last applied: {:.2f} s, CPU {:.2f} s, "
      "resident {} KiB\n",
      count, seconds(changing), changed.cpu_seconds - cold.cpu_seconds, changed.resident_kb);
  EXPECT_EQ(kubelet->actuated(), count) << "one resize each";

  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace mbcas::test
