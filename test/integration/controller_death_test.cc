// Controllers that die: at every step of a decision, and as the leader of two.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/integration/controller_fixture.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

// A child process that ends with this object.
class Child {
 public:
  explicit Child(std::vector<std::string> words) {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) return;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
      ::dup2(out[1], STDOUT_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    out_ = out[0];
  }
  ~Child() {
    if (pid_ > 0 && !ended()) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (out_ >= 0) ::close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for the first byte of its output: it is at work, and SIGTERM ends it in order.
  void waitForOutput() const {
    pollfd readable{.fd = out_, .events = POLLIN, .revents = 0};
    char byte = 0;
    EXPECT_EQ(::poll(&readable, 1, 120'000), 1);
    EXPECT_EQ(::read(out_, &byte, 1), 1);
  }
  bool ended() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ == 0;
  }
  int exitCode() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }
  void signal(int number) const { ::kill(pid_, number); }
  int wait() {
    EXPECT_TRUE(eventually([&] { return ended(); }));
    return exitCode();
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int status_ = 0;
};

class ControllerDeathTest : public ControllerTest {
 protected:
  static std::unique_ptr<Child> controllerUntil(std::string_view step) {
    return std::make_unique<Child>(
        std::vector<std::string>{CONTROLLER_PROCESS, plane->kubeconfig(), std::string(step)});
  }
};

TEST_F(ControllerDeathTest, AtEveryStepOfARaise) {
  for (const controller::Step step : controller::kSteps) {
    if (step == controller::Step::kOriginalForgotten) continue;
    SCOPED_TRACE(controller::name(step));
    const std::string name = "p-" + std::string(controller::name(step));
    const auto pod = makePod(name);
    desire(*pod, 500_m);
    const auto first = controllerUntil(controller::name(step));
    EXPECT_EQ(first->wait(), 9) << "it did not come to this step";

    const auto second = controllerUntil("never");
    second->waitForOutput();
    expectApplied(*pod, 500_m);
    expectAnnotation(name, R"({"main":{"request":"100m","limit":"200m"}})");
    EXPECT_EQ(kubelet->actuated(name), 1) << "once, whoever did it";
    second->signal(SIGTERM);
    EXPECT_EQ(second->wait(), 0);
    ASSERT_TRUE(admin->remove<Pod>(ns, name, {.grace_seconds = 0}));
    ASSERT_TRUE(admin->remove<PodAllocation>(ns, pod->meta.uid));
  }
}

TEST_F(ControllerDeathTest, AtEveryStepOfARestore) {
  for (const controller::Step step :
       {controller::Step::kDecided, controller::Step::kResizeSent, controller::Step::kActuated,
        controller::Step::kOriginalForgotten}) {
    SCOPED_TRACE(controller::name(step));
    const std::string name = "p-" + std::string(controller::name(step));
    const auto pod = makePod(name);
    desire(*pod, 500_m);
    {
      const auto prepare = controllerUntil("never");
      expectApplied(*pod, 500_m);
    }
    annotate(name, "mbcas.io/managed", "false");
    const auto first = controllerUntil(controller::name(step));
    EXPECT_EQ(first->wait(), 9) << "it did not come to this step";
    const auto second = controllerUntil("never");
    EXPECT_TRUE(eventually([&] { return limitOf(name) == 200_m && annotation(name).empty(); }))
        << describe(*pod);
    EXPECT_EQ(kubelet->actuated(name), 2) << "one raise, one restore";
    ASSERT_TRUE(admin->remove<Pod>(ns, name, {.grace_seconds = 0}));
    ASSERT_TRUE(admin->remove<PodAllocation>(ns, pod->meta.uid));
  }
}

TEST_F(ControllerDeathTest, AnotherReplicaTakesOver) {
  const auto replica = [&](const std::string& audit_log) {
    return std::make_unique<Child>(std::vector<std::string>{
        MBCAS_CONTROLLER, "--kubeconfig", plane->kubeconfig(), "--leader-elect-lease", "9",
        "--metrics-bind-address", "0", "--health-probe-bind-address", "127.0.0.1:0", "--audit-log",
        audit_log, "--cooldown", "0s", "--silence", "1h", "--log-level", "error"});
  };
  const auto lines = [](const std::string& path) {
    int count = 0;
    std::FILE* const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return 0;
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) count += c == '\n' ? 1 : 0;
    std::fclose(file);
    return count;
  };
  const auto pod = makePod("p");
  const std::string log_a = plane->dir() + "/a.log";
  const std::string log_b = plane->dir() + "/b.log";
  const auto a = replica(log_a);
  desire(*pod, 500_m);
  expectApplied(*pod, 500_m);
  const auto b = replica(log_b);
  desire(*pod, 600_m);
  expectApplied(*pod, 600_m);
  EXPECT_EQ(lines(log_a), 2);
  EXPECT_EQ(lines(log_b), 0) << "only the leader works";
  a->signal(SIGKILL);
  desire(*pod, 700_m);
  expectApplied(*pod, 700_m);
  EXPECT_EQ(lines(log_b), 1);
  EXPECT_EQ(kubelet->actuated("p"), 3) << "no resize twice";
  b->signal(SIGTERM);
  EXPECT_EQ(b->wait(), 0) << "ends in order";
}

}  // namespace
}  // namespace mbcas::test
