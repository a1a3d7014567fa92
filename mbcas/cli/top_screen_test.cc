#include "mbcas/cli/top_screen.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "mbcas/view/text.h"
#include "test/support/golden.h"

namespace mbcas::cli {
namespace {

using namespace literals;
using view::Key, view::key;
using Action = TopScreen::Action;

NodeRecord state() {
  return *parseState(test::fileText("test/golden/cli/state.json"));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(TopScreen, FitsEveryTerminal) {
  TopView view = topOf(state());
  for (int i = 0; i < 100; ++i) {
    view.rows.push_back({.name_space = "a-namespace-with-a-long-name",
                         .pod = fmt::format("a-pod-with-a-long-name-{:03}", i),
                         .node = "ip-10-0-0-1.internal",
                         .limit = 10000_m});
  }
  for (const bool wide : {false, true}) {
    TopScreen screen({.namespaces = true, .wide = wide});
    screen.update(view);
    for (std::size_t width = 20; width < 200; width += 13) {
      for (std::size_t height = 4; height < 130; height += 11) {
        for (const bool colours : {false, true}) {
          const auto lines = screen.render("mbcas top", width, height, colours);
          EXPECT_LE(lines.size(), height);
          for (const std::string& line : lines) EXPECT_LE(view::width(line), width) << line;
        }
      }
    }
  }
}

TEST(TopScreen, KeysSortAndScroll) {
  TopScreen screen({.namespaces = true});
  screen.update(topOf(state()));
  test::expectGolden("test/golden/cli/top-screen-80x24.txt",
                     joined(screen.render("mbcas top", 80, 24, false)));
  screen.press(key('l'));
  screen.press(key('i'));
  test::expectGolden("test/golden/cli/top-screen-by-limit.txt",
                     joined(screen.render("mbcas top", 80, 10, false)));
  // Eight lines leave room for one pod; the next one comes with the cursor.
  const auto first_pod = [&] {
    const auto lines = screen.render("mbcas top", 80, 8, false);
    return lines.at(5);
  };
  screen.press(key('p'));
  EXPECT_NE(first_pod().find("proxy-1"), std::string::npos) << first_pod();
  screen.press(Key::kDown);
  EXPECT_NE(first_pod().find("batch-1"), std::string::npos) << first_pod();
  screen.press(Key::kEnd);
  screen.press(Key::kPageUp);
  screen.press(Key::kHome);
  EXPECT_NE(first_pod().find("proxy-1"), std::string::npos);
  for (int i = 0; i < 10; ++i) screen.press(Key::kRight);  // once around
  EXPECT_NE(first_pod().find("proxy-1"), std::string::npos);
  screen.press(Key::kLeft);
  screen.press(key('w'));
  EXPECT_NE(screen.render("mbcas top", 200, 24, false)[4].find("DECLARED"), std::string::npos);
}

TEST(TopScreen, ShowsItsKeys) {
  TopScreen screen({});
  screen.update(topOf(state()));
  EXPECT_EQ(screen.press(key('?')), Action::kNothing);
  const std::string help = joined(screen.render("mbcas top", 60, 24, false));
  for (const char* text : {"Enter ", "/ ", "Esc ", "p pod, o node", "g age"}) {
    EXPECT_NE(help.find(text), std::string::npos) << help;
  }
  EXPECT_EQ(screen.press(key('q')), Action::kNothing) << "it only leads back";
  EXPECT_NE(joined(screen.render("mbcas top", 60, 24, false)).find("web-1"), std::string::npos);
  EXPECT_EQ(screen.press(key('q')), Action::kQuit);
}

TEST(TopScreen, FiltersWhatIsTyped) {
  TopScreen screen({});
  screen.update(topOf(state()));
  const auto shows = [&](const char* pod) {
    return joined(screen.render("mbcas top", 100, 24, false)).find(pod) != std::string::npos;
  };
  // Letters that are keys elsewhere are text here.
  for (const char c : std::string("/SHOP/wq")) EXPECT_EQ(screen.press(key(c)), Action::kNothing);
  EXPECT_FALSE(shows("web-1"));
  screen.press(key('\x7f'));
  EXPECT_TRUE(shows("web-1"));
  EXPECT_FALSE(shows("batch-1"));
  EXPECT_TRUE(shows("/SHOP/w_")) << "what was typed is to be seen";
  screen.press(key('\n'));
  EXPECT_FALSE(shows("batch-1")) << "Enter keeps it";
  EXPECT_EQ(screen.press(key('\n')), Action::kExplain);
  EXPECT_EQ(screen.selected()->pod, "web-1");
  screen.press(Key::kEscape);
  EXPECT_TRUE(shows("batch-1"));
  // Nothing matches: there is nothing to explain.
  for (const char c : std::string("/xyzzy\n")) screen.press(key(c));
  EXPECT_EQ(screen.selected(), nullptr);
  EXPECT_EQ(screen.press(key('\n')), Action::kNothing);
}

TEST(TopScreen, TheCursorStaysOnItsPod) {
  TopScreen screen({});
  TopView view = topOf(state());
  screen.update(view);
  EXPECT_EQ(screen.selected()->pod, "batch-1") << "the most throttled";
  screen.press(Key::kDown);
  EXPECT_EQ(screen.selected()->pod, "web-1");
  screen.press(key('p'));
  screen.press(key('i'));
  EXPECT_EQ(screen.selected()->pod, "web-1") << "in whatever order";
  std::erase_if(view.rows, [](const TopRow& row) { return row.pod == "web-1"; });
  screen.update(view);
  ASSERT_NE(screen.selected(), nullptr) << "or on a neighbour, when it is gone";
}

TEST(TopScreen, ExplainsAPodAndComesBack) {
  TopScreen screen({});
  screen.update(topOf(state()));
  ASSERT_EQ(screen.press(key('\r')), Action::kExplain);
  Explanation explanation{.headline = "shop/batch-1: limit 1200m", .sections = {}, .more = {}};
  for (int i = 0; i < 50; ++i) {
    explanation.sections.push_back(
        {fmt::format("Section {}", i), {{"a label", "a value", std::string(200, 'x') + " end"}}});
  }
  screen.show(explanation);
  const auto shown = [&] { return joined(screen.render("mbcas top", 60, 20, false)); };
  EXPECT_NE(shown().find("batch-1: limit"), std::string::npos) << shown();
  EXPECT_NE(shown().find("Section 0"), std::string::npos);
  screen.press(Key::kPageDown);
  EXPECT_EQ(shown().find("Section 0\n"), std::string::npos) << "it scrolls";
  for (std::size_t width = 20; width < 120; width += 7) {
    for (const std::string& line : screen.render("mbcas top", width, 15, false)) {
      EXPECT_LE(view::width(line), width) << line;
    }
  }
  screen.press(Key::kEscape);
  EXPECT_NE(shown().find("web-1"), std::string::npos);
  screen.show(std::string("no pod batch-1 in namespace shop"));
  EXPECT_NE(shown().find("no pod batch-1"), std::string::npos);
}

TEST(TopScreen, NarrowTerminalsShowWhatMatters) {
  TopScreen screen({.namespaces = true});
  screen.update(topOf(state()));
  for (const std::size_t width : {60U, 80U}) {
    const std::string text = joined(screen.render("mbcas top", width, 24, false));
    for (const char* what : {"POD", "NEED", "LIMIT", "MS/S", "batch-1", "q quit", "? help",
                             "/ filter", "Enter explain"}) {
      EXPECT_NE(text.find(what), std::string::npos) << width << " columns:\n" << text;
    }
    test::expectGolden(fmt::format("test/golden/cli/top-screen-narrow-{}.txt", width), text);
  }
}

}  // namespace
}  // namespace mbcas::cli
