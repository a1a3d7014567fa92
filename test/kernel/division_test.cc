// Random trees of cgroups on the real kernel, compared with what mbcas/market/kernel_division.h
// says that it would do. Prints the table that docs/market.md sums up:
//   build/release/test/kernel/kernel_division_test | grep '^|'
// MBCAS_SOAK=1 runs more trees, for 30 s each.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "mbcas/kernel/cgroup.h"
#include "mbcas/market/kernel_division.h"
#include "test/kernel/burner.h"
#include "test/kernel/scratch.h"
#include "test/support/machine.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using namespace std::chrono_literals;
using market::CgroupNode;

constexpr const char* kTop = "/tree";
constexpr Nanos kWarm = 1s;

struct Consumer {
  std::size_t node = 0;  // index into Tree::nodes
  LoadShape load;
};
struct Tree {
  std::vector<CgroupNode> nodes;
  std::vector<std::string> paths;  // of the nodes
  std::vector<Consumer> consumers;
};

class TreeGenerator {
 public:
  TreeGenerator(std::uint64_t seed, unsigned cpus) : random_(seed), cpus_(cpus) {}

  // Cgroups of two or three levels with two to eight consumers. Those of one thread are what the
  // kernel, which divides every CPU separately, treats differently.
  Tree make(bool some_have_one_thread) {
    Tree tree;
    const int levels = 2 + below(2);
    const int count = 2 + below(7);
    // Over the whole range few consumers have nearly everything; so every other tree has weights
    // that differ less.
    least_weight_ = below(2) == 0 ? 2 : 512;
    for (int i = 0; i < count; ++i) {
      std::optional<std::size_t> parent;
      std::string path = kTop;
      for (int level = 1; level < levels; ++level) {
        path += fmt::format("/{}", below(level == 1 ? 3 : 2));
        parent = inner(tree, path, parent);
      }
      const bool one_thread = some_have_one_thread && i % 2 == 0;
      const LoadShape load = anyLoad(one_thread ? 1 : static_cast<int>(cpus_));
      const std::size_t node = add(tree, path + fmt::format("/c{}", i), parent, below(4) == 0);
      tree.nodes[node].demand = load.saturated() ? market::kUncapped : load.demand(cpus_);
      tree.nodes[node].threads = load.threads;
      tree.consumers.push_back({node, load});
    }
    return tree;
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  LoadShape anyLoad(int threads) {
    LoadShape load{.threads = threads};
    if (below(3) == 0) {
      // As long as a quota's period: with a shorter one the load would drop work that it could not
      // do while its cgroup was throttled, and so demand less.
      load.period = 100ms;
      load.on = std::chrono::milliseconds(10 * (1 + below(7)));
    }
    return load;
  }

  std::size_t inner(Tree& tree, const std::string& path, std::optional<std::size_t> parent) {
    const auto known = std::ranges::find(tree.paths, path);
    if (known != tree.paths.end()) return static_cast<std::size_t>(known - tree.paths.begin());
    return add(tree, path, parent, below(5) == 0);
  }

  std::size_t add(Tree& tree, std::string path, std::optional<std::size_t> parent, bool capped) {
    CgroupNode node{.parent = parent};
    node.weight = std::round(least_weight_ * std::pow(8192 / least_weight_, below(1001) * 1e-3));
    if (capped) {
      // On v1 no quota may exceed that of a cgroup above.
      double most = cpus_;
      for (auto above = parent; above; above = tree.nodes[*above].parent) {
        most = std::min(most, tree.nodes[*above].cap);
      }
      node.cap = most * (2 + below(7)) * 0.1;
    }
    tree.nodes.push_back(node);
    tree.paths.push_back(std::move(path));
    return tree.nodes.size() - 1;
  }

  std::mt19937_64 random_;
  unsigned cpus_;
  double least_weight_ = 2;
};

struct Measured {
  std::vector<double> used;  // by the consumers, in cores
  double capacity = 0;       // what other work left
};

// Makes the cgroups, with weights as they are in force from then on, and runs the loads.
Measured measure(Scratch& scratch, Tree& tree, unsigned cpus, Nanos span) {
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    CgroupNode& node = tree.nodes[i];
    scratch.add(tree.paths[i]);
    node.weight = scratch.setWeight(tree.paths[i], node.weight);
    if (std::isfinite(node.cap)) {
      scratch.setLimit(tree.paths[i], Millicores(std::llround(node.cap * 1000)));
    }
  }
  std::vector<kernel::Cgroup> cgroups;
  std::vector<Burner> burners;
  for (const Consumer& consumer : tree.consumers) {
    const std::string& path = tree.paths[consumer.node];
    cgroups.push_back(kernel::Cgroup::open(scratch.mounts(), path).value());
    burners.emplace_back(consumer.load, scratch.directories(path));
  }
  const auto read = [&] {
    std::vector<Nanos> all;
    for (kernel::Cgroup& cgroup : cgroups) all.push_back(cgroup.usage().value_or(0ns));
    return all;
  };
  std::this_thread::sleep_for(kWarm);
  const OthersUse others(scratch.mounts());
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Nanos> before = read();
  std::this_thread::sleep_until(start + span);
  const std::vector<Nanos> after = read();
  const auto wall = static_cast<double>(Nanos(std::chrono::steady_clock::now() - start).count());
  Measured measured{.capacity = std::max(0.0, cpus - others.cpus())};
  for (std::size_t i = 0; i < before.size(); ++i) {
    measured.used.push_back(static_cast<double>((after[i] - before[i]).count()) / wall);
  }
  burners.clear();
  scratch.remove(kTop);
  return measured;
}

// Differences between the kernel and the calculation, as parts of the machine.
struct Differences {
  std::vector<double> consumers;
  int trees = 0;
  int close_trees = 0;  // with no difference above kClose

  static constexpr double kClose = 0.05;

  void addTree(const std::vector<double>& differences) {
    ++trees;
    if (std::ranges::max(differences) <= kClose) ++close_trees;
    consumers.insert(consumers.end(), differences.begin(), differences.end());
  }
  double mean() const {
    return std::accumulate(consumers.begin(), consumers.end(), 0.0) /
           static_cast<double>(consumers.size());
  }
  double close() const {
    const auto count = std::ranges::count_if(consumers, [](double d) { return d <= kClose; });
    return static_cast<double>(count) / static_cast<double>(consumers.size());
  }
};

// What the tree would use of a machine that is otherwise idle.
double usesAlone(const Tree& tree, unsigned cpus) {
  const std::vector<double> shares = market::divideAsKernel(cpus, tree.nodes);
  double sum = 0;
  for (const Consumer& consumer : tree.consumers) sum += shares[consumer.node];
  return sum;
}

std::string describe(const Tree& tree, const Consumer& consumer) {
  std::string weights;
  std::string caps;
  for (std::optional<std::size_t> at = consumer.node; at; at = tree.nodes[*at].parent) {
    const CgroupNode& node = tree.nodes[*at];
    weights = fmt::format("{:.0f}{}{}", node.weight, weights.empty() ? "" : "/", weights);
    if (std::isfinite(node.cap)) {
      caps = fmt::format("{:.2f}{}{}", node.cap, caps.empty() ? "" : "/", caps);
    }
  }
  const LoadShape& load = consumer.load;
  return fmt::format("{} x {} | {} | {}", load.threads,
                     load.saturated() ? "spin" : fmt::format("{} ms of 100", load.on / 1ms),
                     tree.paths[consumer.node].substr(5) + " " + weights, caps);
}

class Division : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Scratch>> scratch = Scratch::make();
    if (!scratch) GTEST_SKIP() << scratch.error().message();
    scratch_ = *std::move(scratch);
    if (cpus_ < 2) GTEST_SKIP() << "needs two CPUs";
  }

  // Measures so many trees and prints what came out. No single tree is measured again because of
  // its result; one that had too little of the machine is, once, and is then left out.
  Differences compare(TreeGenerator generate, bool some_have_one_thread, int trees, Nanos span) {
    Differences all;
    left_out_.clear();
    fmt::print(
        "| tree | CPUs left by others | load | cgroup and weights | quotas | K | measured | "
        "difference, of the machine |\n|---|---|---|---|---|---|---|---|\n");
    for (int number = 1; number <= trees; ++number) {
      Tree tree = generate.make(some_have_one_thread);
      Measured measured = measure(*scratch_, tree, cpus_, span);
      const double least = 0.6 * usesAlone(tree, cpus_);
      if (measured.capacity < least) measured = measure(*scratch_, tree, cpus_, span);
      if (measured.capacity < least) {
        // scripts/test knows these words: once the machine is calm it tries again.
        left_out_ = fmt::format(
            "tree {}: other work used {:.2f} of {} CPUs, of which the tree needs {:.2f}", number,
            cpus_ - measured.capacity, cpus_, least);
        fmt::print("{}\n", left_out_);
        continue;
      }
      const std::vector<double> expected = market::divideAsKernel(measured.capacity, tree.nodes);
      std::vector<double> differences;
      for (std::size_t i = 0; i < tree.consumers.size(); ++i) {
        const double share = expected[tree.consumers[i].node];
        const double difference = (measured.used[i] - share) / cpus_;
        differences.push_back(std::abs(difference));
        fmt::print("| {} | {:.2f} | {} | {:.3f} | {:.3f} | {:+.1f} % |\n", number,
                   measured.capacity, describe(tree, tree.consumers[i]), share, measured.used[i],
                   difference * 100);
      }
      all.addTree(differences);
    }
    if (all.trees > 0) {
      fmt::print(
          "{} trees, {} of them within {:.0f} % of the machine; {} consumers, {:.0f} % of them; "
          "mean "
          "difference {:.2f} %, worst {:.2f} %\n",
          all.trees, all.close_trees, Differences::kClose * 100, all.consumers.size(),
          all.close() * 100, all.mean() * 100, std::ranges::max(all.consumers) * 100);
    }
    return all;
  }

  std::unique_ptr<Scratch> scratch_;
  unsigned cpus_ = static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN));
  std::string left_out_;
};

TEST_F(Division, IsTheKernels) {
  Differences all;
  // In seconds the kernel's balancing of its CPUs is chance, and other work disturbs it, although
  // what that uses is taken into account.
  const Trial trial = tryOnCalmMachine(scratch_->mounts(), {.others = 0.3, .chances = 2}, [&] {
    all = compare(TreeGenerator(101, cpus_), false, soaking() ? 20 : 5, soaking() ? 30s : 4s);
    return !left_out_.empty() || (all.mean() <= 0.03 && all.close() >= 0.8);
  });
  if (!left_out_.empty()) GTEST_SKIP() << left_out_;
  if (trial.disturbed()) GTEST_SKIP() << trial.reason();
  EXPECT_LE(all.mean(), 0.03);
  EXPECT_GE(all.close(), 0.8);
}

// A group of one thread has all of its weight on one CPU, a group of many a part of it on each: the
// two are not divided as if the machine were one large CPU. How much that is, for the record.
TEST_F(Division, OneThreadNextToMany) {
  compare(TreeGenerator(102, cpus_), true, soaking() ? 10 : 2, soaking() ? 30s : 3s);
}

}  // namespace
}  // namespace mbcas::test
