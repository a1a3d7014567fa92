#include "mbcas/kernel/proc_stat.h"

#include <gtest/gtest.h>

#include "mbcas/kernel/fake_tree.h"

namespace mbcas::kernel {
namespace {

TEST(ProcStat, ReadsTheSameFileAgain) {
  FakeTree proc({{"stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1\nintr 9\n"}});
  ProcStat stat(proc.root());
  EXPECT_EQ(stat.time().value(),
            (MachineTime{.tasks = 6, .idle = 9, .interrupts = 13, .steal = 8, .cpus = 1}));
  proc.write("stat", "cpu  2 2 3 4 5 6 7 8 0 0\ncpu0 1\ncpu1 1\nintr 9\n");
  EXPECT_EQ(stat.time()->tasks, 7u);
  EXPECT_EQ(stat.time()->cpus, 2u);
}

TEST(ProcStat, CountsHundredsOfCpus) {
  std::string text = "cpu  1 2 3 4 5 6 7 8 0 0\n";
  for (int cpu = 0; cpu < 700; ++cpu) {
    text += "cpu" + std::to_string(cpu) + " 1234567 2345678 3456789 4567890 0 0 0 0 0 0\n";
  }
  const FakeTree proc({{"stat", text + "intr " + std::string(100'000, '7') + "\n"}});
  ProcStat stat(proc.root());
  EXPECT_EQ(stat.time()->cpus, 700u);
}

TEST(ProcStat, SaysWhatIsWrong) {
  const FakeTree proc({{"bad/stat", "cpu x\n"}});
  EXPECT_TRUE(ProcStat(proc.root()).time().error().absent());
  const auto bad = ProcStat(proc.root() + "/bad").time();
  ASSERT_FALSE(bad);
  EXPECT_FALSE(bad.error().absent());
  EXPECT_NE(bad.error().detail.find("cpu x"), std::string::npos) << bad.error().detail;
}

TEST(ProcStat, ReadsThisMachine) {
  ProcStat stat("/proc");
  const auto time = stat.time();
  ASSERT_TRUE(time) << time.error().detail;
  EXPECT_GE(time->cpus, 1u);
}

}  // namespace
}  // namespace mbcas::kernel
