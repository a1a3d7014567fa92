#include "mbcas/host/ledger.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "mbcas/host/limit_file.h"
#include "mbcas/kernel/fake_tree.h"

namespace mbcas::host {
namespace {

using namespace literals;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

std::string contentOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::uint64_t inodeOf(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

class LedgerTest : public testing::TestWithParam<kernel::Version> {
 protected:
  LedgerTest() {
    if (GetParam() == kernel::Version::kV2) {
      tree.write("cgroup.controllers", "cpu pids\n");
      tree.write("a/cpu.max", "max 100000\n");
    } else {
      tree.write("cpu/cpu.shares", "1024\n");
      tree.write("cpu/cpuacct.usage", "1\n");
      tree.write("cpuacct/cpuacct.usage", "1\n");
      tree.write("cpu/a/cpu.cfs_quota_us", "-1\n");
      tree.write("cpu/a/cpu.cfs_period_us", "100000\n");
      tree.write("cpuacct/a/cpuacct.usage", "1\n");
    }
    mounts = *kernel::detectMounts(tree.root());
  }
  std::string limitText() const {
    return GetParam() == kernel::Version::kV2
               ? contentOf(mounts.cpu + "/a/cpu.max")
               : contentOf(mounts.cpu + "/a/cpu.cfs_quota_us") + " " +
                     contentOf(mounts.cpu + "/a/cpu.cfs_period_us");
  }
  std::uint64_t cgroup() const { return inodeOf(mounts.cpu + "/a"); }

  kernel::FakeTree tree, run;
  kernel::Mounts mounts;
  std::string file = run.root() + "/deeper/state";
};
INSTANTIATE_TEST_SUITE_P(, LedgerTest, testing::Values(kernel::Version::kV1, kernel::Version::kV2),
                         [](const auto& param) {
                           return param.param == kernel::Version::kV1 ? "V1" : "V2";
                         });

TEST_P(LedgerTest, PutsBackWhatACrashLeft) {
  const std::uint64_t number = cgroup();
  {
    auto ledger = Ledger::open(file);
    ASSERT_TRUE(ledger) << ledger.error().message();
    ASSERT_TRUE(ledger->record({"/a", number, {std::nullopt, milliseconds(100)}}));
    ASSERT_TRUE(writeLimit(mounts, "/a", number, limitOf(250_m, milliseconds(100))));
    EXPECT_EQ(limitText().substr(0, 5), "25000");
  }
  auto ledger = Ledger::open(file);
  ASSERT_TRUE(ledger);
  ASSERT_EQ(ledger->content().limits.size(), 1u);
  const Restored restored = ledger->restore(mounts);
  EXPECT_EQ(restored.limits, 1u);
  EXPECT_TRUE(restored.failures.empty());
  EXPECT_EQ(limitText(), GetParam() == kernel::Version::kV2 ? "max 100000" : "-1 100000\n");
  EXPECT_TRUE(ledger->content().limits.empty());
  EXPECT_EQ(contentOf(file), "");
}

TEST_P(LedgerTest, OneAtATime) {
  const auto first = Ledger::open(file);
  ASSERT_TRUE(first);
  const auto second = Ledger::open(file);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("another mbcas is running"), std::string::npos);
}

TEST_P(LedgerTest, LeavesACgroupOfTheSameNameAlone) {
  auto ledger = Ledger::open(file);
  ASSERT_TRUE(ledger->record({"/a", cgroup() + 1, {20'000'000ns, milliseconds(100)}}));
  const std::string before = limitText();
  const Restored restored = ledger->restore(mounts);
  EXPECT_EQ(restored.gone, 1u);
  EXPECT_EQ(limitText(), before);
  const auto refused = writeLimit(mounts, "/a", cgroup() + 1, limitOf(1_m, milliseconds(100)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "/a: another cgroup has taken this name");
}

TEST_P(LedgerTest, TheLaterEntryCounts) {
  {
    auto ledger = Ledger::open(file);
    ASSERT_TRUE(ledger->record({"/a", cgroup(), {20'000'000ns, milliseconds(100)}}));
    ASSERT_TRUE(ledger->record({"/a", cgroup(), {30'000'000ns, milliseconds(50)}}));
    ASSERT_TRUE(ledger->record({"/a", cgroup(), {30'000'000ns, milliseconds(50)}}));
  }
  auto ledger = Ledger::open(file);
  EXPECT_EQ(ledger->restore(mounts).limits, 1u);
  EXPECT_EQ(limitText(), GetParam() == kernel::Version::kV2 ? "30000 50000" : "30000 50000");
}

TEST(LedgerText, EveryLineComesBackAndHalfALineDoesNot) {
  const Original a{"/x y/z", 7, {20'000'000ns, milliseconds(100)}};
  const Original b{"/b", 8, {std::nullopt, milliseconds(50)}};
  const std::string text = ledgerLine(a) + "made /own\n" + ledgerLine(b);
  const LedgerContent whole = parseLedger(text);
  EXPECT_EQ(whole, (LedgerContent{{a, b}, {"/own"}}));
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    const LedgerContent part = parseLedger(text.substr(0, cut));
    EXPECT_LT(part.limits.size() + part.made.size(), 3u);
    for (const Original& one : part.limits) EXPECT_TRUE(one == a || one == b);
  }
  EXPECT_EQ(parseLedger("limit x 5 5 /a\nlimit 1 -5 5 /a\nlimit 1 5 0 /a\nlimit 1 5 5 a\nmade b\n"),
            LedgerContent{});
}

TEST(LimitFile, NotBelowTheKernelsSmallestQuota) {
  EXPECT_EQ(limitOf(250_m, milliseconds(100)).quota, milliseconds(25));
  EXPECT_EQ(limitOf(1_m, milliseconds(100)).quota, milliseconds(1));
}

}  // namespace
}  // namespace mbcas::host
