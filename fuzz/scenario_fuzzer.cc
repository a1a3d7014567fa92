// Anybody's bytes as a scenario: refused in one line, or simulated for a moment.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "mbcas/sim/scenario.h"
#include "mbcas/sim/simulation.h"

namespace {

using namespace mbcas::sim;

// Little enough to be simulated thousands of times a second.
bool small(const Scenario& scenario) {
  int threads = 0;
  for (const PodSpec& pod : scenario.pods) {
    for (const ContainerSpec& container : pod.containers) {
      threads += container.workload.threads;
      if (container.workload.rate * container.workload.profile.highest() > 1000) return false;
    }
  }
  return threads < 32;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto points = parseTrace(text); points && points->empty()) std::abort();
  auto scenario = parseScenario(text);
  if (!scenario) {
    const std::string& message = scenario.error().message();
    if (message.empty() || message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (!small(*scenario)) return 0;
  scenario->duration = std::chrono::seconds(3);
  scenario->settle = std::chrono::seconds(0);
  const auto policy = makePolicy("responsive", scenario->cpus);
  const Report report = simulate(*scenario, **policy);
  if (report.pods.size() != scenario->pods.size()) std::abort();
  double used = 0;
  for (const PodReport& pod : report.pods) used += pod.used;
  if (used > scenario->cpus * 1.001) std::abort();
  return 0;
}
