// How fast the model is: simulated time per time, for nodes of different kinds.
#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>

#include "mbcas/sim/random_node.h"
#include "mbcas/sim/simulation.h"

namespace {

using namespace mbcas::sim;

// Run in the root of the source tree, as `make bench` does.
void simulateFor(benchmark::State& state, const char* name, const char* policy_name) {
  std::ostringstream text;
  text << std::ifstream(std::string("evaluation/scenarios/") + name + ".yaml").rdbuf();
  const auto scenario = parseScenario(text.str());
  if (!scenario) return state.SkipWithError(scenario.error().message().c_str());
  double simulated = 0;
  for (auto _ : state) {
    const auto policy = makePolicy(policy_name, scenario->cpus);
    const Report report = simulate(*scenario, **policy);
    simulated += report.seconds;
  }
  state.counters["times_real_time"] = benchmark::Counter(simulated, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(simulateFor, idle100_static, "idle-100", "static")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulateFor, idle100_responsive, "idle-100", "responsive")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulateFor, contention_static, "contention", "static")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulateFor, contention_responsive, "contention", "responsive")
    ->Unit(benchmark::kMillisecond);

// Closed loops on random nodes, one after the other.
void simulateRandomNodes(benchmark::State& state, const char* policy_name) {
  std::uint64_t seed = 0;
  for (auto _ : state) {
    const Scenario scenario = randomNode(++seed);
    const auto policy = makePolicy(policy_name, scenario.cpus);
    benchmark::DoNotOptimize(run(scenario, **policy));
  }
  state.counters["nodes"] =
      benchmark::Counter(static_cast<double>(seed), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(simulateRandomNodes, random_static, "static")->Iterations(200);
BENCHMARK_CAPTURE(simulateRandomNodes, random_unlimited, "unlimited")->Iterations(200);
BENCHMARK_CAPTURE(simulateRandomNodes, random_responsive, "responsive")->Iterations(200);

}  // namespace
