#include "test/support/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "mbcas/kernel/cgroup.h"
#include "mbcas/kernel/parse.h"

namespace mbcas::test {
namespace {

using namespace std::chrono_literals;

constexpr int kTries = 3;

int numberIn(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::atoi(text);
}

void waitForCalm(const kernel::Mounts& own, const Needs& needs) {
  const Nanos patience = std::min(needs.patience, Nanos(1s) * numberIn("MBCAS_PATIENCE", 3600));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    const OthersUse use(own);
    std::this_thread::sleep_for(1s);
    if (use.cpus() <= needs.others) return;
  }
}

}  // namespace

OthersUse::OthersUse(const kernel::Mounts& own) : own_(own), begin_(read()) {}

OthersUse::Reading OthersUse::read() const {
  std::ostringstream text;
  text << std::ifstream("/proc/stat").rdbuf();
  const auto machine = kernel::parseProcStat(text.str());
  auto cgroup = kernel::Cgroup::open(own_, "/");
  const std::int64_t tick = Nanos(1s).count() / ::sysconf(_SC_CLK_TCK);
  return {.at = std::chrono::steady_clock::now().time_since_epoch(),
          .busy = Nanos(machine ? static_cast<std::int64_t>(machine->busy()) * tick : 0),
          .own = cgroup ? cgroup->usage().value_or(Nanos(0)) : Nanos(0)};
}

double OthersUse::cpus() const {
  const Reading now = read();
  const Nanos others = (now.busy - begin_.busy) - (now.own - begin_.own);
  const Nanos wall = std::max(now.at - begin_.at, Nanos(1ms));
  return std::max(0.0, static_cast<double>(others.count()) / static_cast<double>(wall.count()));
}

std::string Trial::reason() const {
  return fmt::format(
      "other work used {:.2f} of {} CPUs in the last of {} tries, where {:.2f} are allowed", others,
      std::thread::hardware_concurrency(), tries, allowed);
}

Trial tryOnCalmMachine(const kernel::Mounts& own, const Needs& needs,
                       const std::function<bool()>& attempt) {
  Trial trial{.allowed = needs.others};
  const int most = std::max(needs.chances, numberIn("MBCAS_CHANCES", 1));
  int chances = most;
  while (true) {
    const OthersUse use(own);
    trial.good = attempt();
    trial.others = use.cpus();
    ++trial.tries;
    if (trial.good) return trial;
    if (!trial.disturbed() && --chances <= 0) return trial;
    if (trial.tries >= std::max(kTries, most)) return trial;
    if (trial.disturbed()) {
      fmt::print("{}; once more\n", trial.reason());
      waitForCalm(own, needs);
    }
  }
}

}  // namespace mbcas::test
