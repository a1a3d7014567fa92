#include "mbcas/kernel/watch.h"

#include <gtest/gtest.h>

#include "mbcas/kernel/fake_tree.h"

namespace mbcas::kernel {
namespace {

class EachMethod : public ::testing::TestWithParam<DirectoryWatch::Method> {};

TEST_P(EachMethod, NoticesSubdirectoriesComingAndGoing) {
  FakeTree tree;
  tree.makeCgroup("a");
  tree.makeCgroup("b");
  DirectoryWatch watch(GetParam());
  watch.add("A", tree.root() + "/a");
  watch.add("B", tree.root() + "/b");
  std::unordered_set<std::string> changed;
  EXPECT_TRUE(watch.poll(changed, false));
  EXPECT_TRUE(changed.empty());

  tree.makeCgroup("a/new");
  EXPECT_TRUE(watch.poll(changed, false));
  EXPECT_EQ(changed, std::unordered_set<std::string>{"A"});
  EXPECT_TRUE(watch.poll(changed, true));
  EXPECT_TRUE(changed.empty()) << "reported once";

  tree.remove("a/new");
  tree.write("b/file", "no directory");
  watch.poll(changed, false);
  EXPECT_EQ(changed, std::unordered_set<std::string>{"A"});

  watch.remove("A");
  tree.makeCgroup("a/more");
  watch.poll(changed, true);
  EXPECT_TRUE(changed.empty());
  EXPECT_EQ(watch.missedByEvents(), 0u);
}

TEST_P(EachMethod, ADirectoryMadeAnewIsWatchedAgain) {
  FakeTree tree;
  tree.makeCgroup("a");
  DirectoryWatch watch(GetParam());
  watch.add("A", tree.root() + "/a");
  tree.remove("a");
  tree.makeCgroup("a");
  watch.add("A", tree.root() + "/a");
  std::unordered_set<std::string> changed;
  watch.poll(changed, false);
  tree.makeCgroup("a/new");
  watch.poll(changed, false);
  EXPECT_TRUE(changed.contains("A"));
}

INSTANTIATE_TEST_SUITE_P(Watch, EachMethod,
                         ::testing::Values(DirectoryWatch::Method::kInotify,
                                           DirectoryWatch::Method::kLinkCount));

}  // namespace
}  // namespace mbcas::kernel
