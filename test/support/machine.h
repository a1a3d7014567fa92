// Whether a test in real time had the CPUs that it needs.
//
// A test states what it needs, tries, and judges the try only if it had that: a bad result on a
// machine that other work kept busy says nothing. It is tried again, and skipped with the figure
// where the machine never becomes calm:
//
//   const Trial trial = tryOnCalmMachine(scratch->mounts(), {.others = 0.1}, [&] { ... });
//   if (trial.disturbed()) GTEST_SKIP() << trial.reason();
//   EXPECT_TRUE(trial.good);
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mbcas/base/clock.h"
#include "mbcas/kernel/mounts.h"

namespace mbcas::test {

// CPUs that the rest of the machine used since the construction, on average. Includes the time that
// a hypervisor took away.
class OthersUse {
 public:
  // `own`: the hierarchies as seen from a cgroup that holds everything of the test, itself too.
  explicit OthersUse(const kernel::Mounts& own);
  double cpus() const;

 private:
  struct Reading {
    Nanos at{0};
    Nanos busy{0};  // CPU time of the machine
    Nanos own{0};   // of which the test's
  };
  Reading read() const;

  kernel::Mounts own_;
  Reading begin_;
};

struct Needs {
  double others = 0.1;  // CPUs that other work may use meanwhile
  // Some measurements depend on chance, such as where a period begins: how many of them may be bad
  // on a calm machine before the test is.
  int chances = 1;
  Nanos patience = std::chrono::seconds(15);  // for other work to end before another try
};

struct Trial {
  bool good = false;
  double others = 0;   // in the last try
  double allowed = 0;  // by Needs
  int tries = 0;

  // It failed, and other work may be why.
  bool disturbed() const { return !good && others > allowed; }
  std::string reason() const;
};

// At most three tries, or as many as there are chances; after one on a busy machine it waits for
// other work to end. $MBCAS_CHANCES is the least number of chances, for a virtual machine, which
// cannot measure what its host takes away; $MBCAS_PATIENCE the longest wait in seconds, for where
// other work is known to go on.
Trial tryOnCalmMachine(const kernel::Mounts& own, const Needs& needs,
                       const std::function<bool()>& attempt);

}  // namespace mbcas::test
