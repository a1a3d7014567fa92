#include "mbcas/view/screen.h"

#include <gtest/gtest.h>

#include "mbcas/view/text.h"

namespace mbcas::view {
namespace {

using namespace literals;

NodeScreen example(int pods) {
  NodeScreen screen{.title = "mbcas run",
                    .subtitle = "cgroup v2, 2 CPUs",
                    .capacity = 1800_m,
                    .usage = 900_m,
                    .scarce = true,
                    .price = 0.25,
                    .welfare = 0.97};
  for (int i = 0; i < pods; ++i) {
    screen.pods.push_back({.name = "pod-" + std::to_string(i),
                           .need = 300_m,
                           .limit = 200_m,
                           .usage = 200_m,
                           .throttled = 100_m,
                           .throttling = {0, 50, 100},
                           .note = "uses 300m"});
  }
  return screen;
}

TEST(Screen, ShowsEveryNumber) {
  const auto lines = render(example(1), 100, 24, false);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].starts_with("mbcas run "));
  EXPECT_TRUE(lines[0].ends_with("cgroup v2, 2 CPUs"));
  EXPECT_TRUE(lines[1].ends_with("0.90 of 1.80 CPU  scarce  price 0.25  fairness 0.97"))
      << lines[1];
  EXPECT_NE(lines[4].find("pod-0"), std::string::npos);
  EXPECT_NE(lines[4].find("300m"), std::string::npos);
  EXPECT_NE(lines[4].find("100 ms/s"), std::string::npos);
  EXPECT_NE(lines[4].find("▁▅█"), std::string::npos);
}

TEST(Screen, NeverLeavesItsRectangle) {
  for (std::size_t width = 20; width <= 200; width += 7) {
    for (std::size_t height = 5; height <= 60; height += 9) {
      for (const int pods : {0, 1, 4, 100}) {
        NodeScreen screen = example(pods);
        screen.notes = {"something happened that takes a long sentence to tell", "b", "c", "d"};
        for (const bool colours : {false, true}) {
          const auto lines = render(screen, width, height, colours);
          EXPECT_LE(lines.size(), height);
          for (const std::string& line : lines) {
            EXPECT_LE(view::width(line), std::max<std::size_t>(width, 47)) << width << line;
          }
        }
      }
    }
  }
}

TEST(Screen, SaysWhatItLeavesOut) {
  const auto lines = render(example(50), 80, 24, false);
  EXPECT_EQ(lines.size(), 23u);
  EXPECT_EQ(lines.back(), "… and 32 more pods");
}

}  // namespace
}  // namespace mbcas::view
