// How long a clearing takes, next to two lower bounds in the same run: one pass over the pods, and
// sorting as many doubles. `market_benchmark` prints the ratios that matter after the table:
//
//   pods   solve   per tenfold step   / one pass   / sort   reference / solve
//
// and for the kernel's division of a node with so many pods of two containers each:
//
//   pods   divide   / one clearing of all containers
//
// Times depend on the machine and what else runs on it; the ratios are what to look at.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "mbcas/market/kernel_division.h"
#include "mbcas/market/reference/random_problem.h"
#include "mbcas/market/reference/random_tree.h"
#include "mbcas/market/reference/reference.h"
#include "mbcas/market/solver.h"

namespace {

using namespace mbcas::market;
using mbcas::Millicores;

// Different problems in turn, so that branch predictors cannot learn one by heart.
std::vector<Problem> problemsOf(std::size_t pods, bool equal, Objective objective) {
  reference::ProblemGenerator generate(pods);
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, 20'000 / pods); ++i) {
    problems.push_back(generate.ordinary(pods));
    problems.back().objective = objective;
    if (!equal) continue;
    for (Pod& pod : problems.back().pods) {
      pod.bid = 100;
      pod.min = Millicores(100);
      pod.max = Millicores(1000);
    }
    problems.back().capacity = Millicores(static_cast<std::int64_t>(pods * 400 + pods / 2));
  }
  return problems;
}

void solve(benchmark::State& state, bool equal, Objective objective) {
  const auto problems = problemsOf(static_cast<std::size_t>(state.range(0)), equal, objective);
  Solver solver;
  Clearing clearing;
  std::size_t next = 0;
  for (auto _ : state) {
    if (!solver.solve(problems[next], clearing)) state.SkipWithError("not a problem");
    benchmark::DoNotOptimize(clearing.pods.data());
    next = next + 1 == problems.size() ? 0 : next + 1;
  }
}

void solveOrdinary(benchmark::State& state) {
  solve(state, false, Objective::kBargaining);
}
void solveWelfare(benchmark::State& state) {
  solve(state, false, Objective::kWelfare);
}
void solveEqualPods(benchmark::State& state) {
  solve(state, true, Objective::kBargaining);
}

void onePass(benchmark::State& state) {
  const auto problems = problemsOf(static_cast<std::size_t>(state.range(0)), false, {});
  std::size_t next = 0;
  for (auto _ : state) {
    double bids = 0;
    Millicores amounts;
    for (const Pod& pod : problems[next].pods) {
      bids += pod.bid;
      amounts += pod.max - pod.min;
    }
    benchmark::DoNotOptimize(bids);
    benchmark::DoNotOptimize(amounts);
    next = next + 1 == problems.size() ? 0 : next + 1;
  }
}

void sortDoubles(benchmark::State& state) {
  const auto problems = problemsOf(static_cast<std::size_t>(state.range(0)), false, {});
  std::vector<double> bids;
  std::size_t next = 0;
  for (auto _ : state) {
    bids.clear();
    for (const Pod& pod : problems[next].pods) bids.push_back(pod.bid);
    std::sort(bids.begin(), bids.end());
    benchmark::DoNotOptimize(bids.data());
    next = next + 1 == problems.size() ? 0 : next + 1;
  }
}

void referenceSolve(benchmark::State& state) {
  const auto problems = problemsOf(static_cast<std::size_t>(state.range(0)), false, {});
  for (auto _ : state) benchmark::DoNotOptimize(reference::clear(problems[0]).allocated);
}

constexpr std::size_t kContainers = 2;  // of each pod

std::vector<reference::Tree> treesOf(std::size_t pods) {
  reference::TreeGenerator generate(pods);
  std::vector<reference::Tree> trees;
  for (int i = 0; i < 20; ++i) trees.push_back(generate.ordinary(pods, kContainers));
  return trees;
}

void divideTree(benchmark::State& state) {
  const auto trees = treesOf(static_cast<std::size_t>(state.range(0)));
  KernelDivision division;
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(division.divide(trees[next].capacity, trees[next].nodes).data());
    next = next + 1 == trees.size() ? 0 : next + 1;
  }
}

// As many consumers, without the tree: one clearing.
void divideFlat(benchmark::State& state) {
  std::vector<Problem> problems;
  for (const reference::Tree& tree : treesOf(static_cast<std::size_t>(state.range(0)))) {
    const auto microcores = [](double cores) {
      return Millicores(static_cast<std::int64_t>(cores * 1e6));
    };
    Problem problem{.capacity = microcores(tree.capacity), .objective = Objective::kWelfare};
    for (const CgroupNode& node : tree.nodes) {
      if (node.demand == 0) continue;
      problem.pods.push_back({.bid = node.weight, .max = microcores(node.demand)});
    }
    problems.push_back(std::move(problem));
  }
  Solver solver;
  Clearing clearing;
  std::size_t next = 0;
  for (auto _ : state) {
    if (!solver.solve(problems[next], clearing)) state.SkipWithError("not a problem");
    benchmark::DoNotOptimize(clearing.pods.data());
    next = next + 1 == problems.size() ? 0 : next + 1;
  }
}

BENCHMARK(divideTree)->Arg(10)->Arg(110)->Arg(1000);
BENCHMARK(divideFlat)->Arg(10)->Arg(110)->Arg(1000);
BENCHMARK(solveOrdinary)->RangeMultiplier(10)->Range(10, 100'000);
BENCHMARK(solveWelfare)->RangeMultiplier(10)->Range(10, 100'000);
BENCHMARK(solveEqualPods)->RangeMultiplier(10)->Range(10, 100'000);
BENCHMARK(onePass)->RangeMultiplier(10)->Range(10, 100'000);
BENCHMARK(sortDoubles)->RangeMultiplier(10)->Range(10, 100'000);
BENCHMARK(referenceSolve)->RangeMultiplier(10)->Range(10, 10'000);

// Keeps the times, and prints how they relate at the end.
class Ratios : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      double& best = times_[run.run_name.function_name][std::stol(run.run_name.args)];
      const double time = run.GetAdjustedCPUTime();
      best = best == 0 ? time : std::min(best, time);
    }
    ConsoleReporter::ReportRuns(runs);
  }
  void Finalize() override {
    ConsoleReporter::Finalize();
    for (const char* solver : {"solveOrdinary", "solveWelfare", "solveEqualPods"}) {
      GetOutputStream() << fmt::format("\n{}\n{:>8}{:>14}{:>12}{:>12}{:>10}{:>20}\n", solver,
                                       "pods", "time", "per x10", "/ one pass", "/ sort",
                                       "reference / solve");
      double before = 0;
      for (const auto& [pods, time] : times_[solver]) {
        const auto ratio = [](double a, double b) {
          return a == 0 || b == 0 ? std::string("-") : fmt::format("{:.1f}", a / b);
        };
        GetOutputStream() << fmt::format(
            "{:>8}{:>11.2f} us{:>12}{:>12}{:>10}{:>20}\n", pods, time / 1000, ratio(time, before),
            ratio(time, times_["onePass"][pods]), ratio(time, times_["sortDoubles"][pods]),
            ratio(times_["referenceSolve"][pods], time));
        before = time;
      }
    }
    GetOutputStream() << fmt::format("\ndivideTree\n{:>8}{:>14}{:>18}\n", "pods", "time",
                                     "/ one clearing");
    for (const auto& [pods, time] : times_["divideTree"]) {
      GetOutputStream() << fmt::format("{:>8}{:>11.2f} us{:>18.1f}\n", pods, time / 1000,
                                       time / times_["divideFlat"][pods]);
    }
  }

 private:
  std::map<std::string, std::map<long, double>> times_;  // name -> pods -> nanoseconds
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Ratios reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  return 0;
}
