#include "mbcas/view/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "mbcas/base/utf8.h"

namespace mbcas::view {
namespace {

TEST(Text, PaintsOnlyWhenAsked) {
  EXPECT_EQ(paint("x", Colour::kRed, true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(paint("x", Colour::kRed, false), "x");
  EXPECT_EQ(paint("x", Colour::kNone, true), "x");
  EXPECT_EQ(paint("", Colour::kRed, true), "");
}

TEST(Text, WidthIsThatOfTheScreen) {
  EXPECT_EQ(width("abc"), 3u);
  EXPECT_EQ(width("█▌…"), 3u);
  EXPECT_EQ(width(paint("abc", Colour::kBold, true)), 3u);
  EXPECT_EQ(width("\x1b[3"), 0u);
}

TEST(Text, FitsExactly) {
  EXPECT_EQ(fit("ab", 4), "ab  ");
  EXPECT_EQ(fitRight("ab", 4), "  ab");
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("ééééé", 3), "éé…");
  EXPECT_EQ(width(fit("▁▂▃▄▅▆", 4)), 4u);
}

TEST(Text, BarsInEighths) {
  EXPECT_EQ(bar(0, 4), "    ");
  EXPECT_EQ(bar(1, 4), "████");
  EXPECT_EQ(bar(0.5, 4), "██  ");
  EXPECT_EQ(bar(0.53125, 4), "██▏ ");
  EXPECT_EQ(bar(7, 2), "██");
  EXPECT_EQ(bar(-1, 2), "  ");
  EXPECT_EQ(bar(std::nan(""), 2), "  ");
}

TEST(Text, SparklinesShowTheLastValues) {
  const double values[] = {9, 0, 5, 10};
  EXPECT_EQ(sparkline(values, 3), "▁▅█");
  EXPECT_EQ(sparkline(values, 6), "  ▇▁▅█");
  EXPECT_EQ(sparkline(values, 3, 100), "▁▁▂");
  EXPECT_EQ(sparkline({}, 2), "  ");
}

TEST(Text, TablesAlignAndFit) {
  Table table({{"NAME", Table::Align::kLeft}, {"CPU"}, {"NOTE", Table::Align::kLeft}});
  table.row({"a", "1200m", "x"});
  table.row({"longer", "5m"}, Colour::kYellow);
  EXPECT_EQ(table.toString(false),
            "NAME      CPU  NOTE\n"
            "a       1200m  x\n"
            "longer     5m\n");
  EXPECT_EQ(table.toString(false, 14), "NAME      CPU\na       1200m\nlonger     5m\n");
  EXPECT_NE(table.toString(true).find("\x1b[33mlonger     5m\x1b[0m\n"), std::string::npos);
}

TEST(Text, TablesGiveWayInOrder) {
  Table table({{"NAME", Table::Align::kLeft, 4}, {"CPU"}, {"NOTE", Table::Align::kLeft}});
  table.row({"a-long-name", "1200m", "x"});
  EXPECT_EQ(table.toString(false, 24), "NAME           CPU  NOTE\na-long-name  1200m  x\n");
  EXPECT_EQ(table.toString(false, 22), "NAME          CPU NOTE\na-long-name 1200m x\n");
  EXPECT_EQ(table.toString(false, 18), "NAME      CPU NOTE\na-long… 1200m x\n");
  EXPECT_EQ(table.toString(false, 12), "NAME    CPU\na-l…  1200m\n");
  EXPECT_EQ(table.toString(false, 3), "\n\n");
  EXPECT_EQ(table.toMarkdown(),
            "| NAME | CPU | NOTE |\n|---|---|---|\n| a-long-name | 1200m | x |\n");
}

TEST(Text, WrapsAtBlanks) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("one two three", 0), (Lines{"one two three"}));
  EXPECT_EQ(wrap("a overlong b", 3), (Lines{"a", "overlong", "b"}));
  EXPECT_EQ(wrap("", 5), (Lines{""}));
}

TEST(Text, PrintableShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[31m\tb\x7f é"), "a\\x1b[31m\\x09b\\x7f é");
  EXPECT_EQ(printable("\u009b31m \x9b \u202e \U000e0041 █…"),
            "\\u009b31m \\x9b \\u202e \\U000e0041 █…");
  EXPECT_EQ(printable("a\nb"), "a\\x0ab");
  EXPECT_EQ(printable("a\nb\r", true), "a\nb\\x0d");
}

bool harmless(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = firstCharacter(text);
    if (character.bytes == 0 || isInvisible(character.code)) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// Whatever bytes anybody wrote, nothing that is made of them holds what a terminal obeys.
RC_GTEST_PROP(Text, NothingForeignIsObeyed, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::oneOf(rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
                     rc::gen::element<std::string>("\x1b[2J", "\u009b0c", "\u202e", "\r\n", "é",
                                                   "█", "\xc2", " ")));
  const std::string text = joined(pieces);
  const auto columns = *rc::gen::inRange<std::size_t>(0, 30);
  RC_ASSERT(harmless(printable(text)));
  RC_ASSERT(printable(printable(text)) == printable(text));
  RC_ASSERT(harmless(paint(text, Colour::kRed, false)));
  const std::string painted = paint(text, Colour::kRed, true);
  RC_ASSERT(text.empty() || painted == "\x1b[31m" + printable(text) + "\x1b[0m");
  RC_ASSERT(harmless(fit(text, columns)));
  RC_ASSERT(harmless(fitRight(text, columns)));
  RC_ASSERT(columns == 0 || width(fit(text, columns)) == columns);
  RC_ASSERT(harmless(joined(wrap(text, columns))));
  Table table({{text, Table::Align::kLeft, 4}, {"B"}});
  table.row({text, text}, Colour::kRed);
  for (std::string out : {table.toString(false, columns), table.toMarkdown()}) {
    std::erase(out, '\n');
    RC_ASSERT(harmless(out));
  }
  const std::string plain = table.toString(false);
  RC_ASSERT(std::ranges::count(plain, '\n') == 2);
}

}  // namespace
}  // namespace mbcas::view
