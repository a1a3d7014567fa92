#include "mbcas/view/plot.h"

#include <gtest/gtest.h>

#include <limits>

#include "mbcas/view/page.h"

namespace mbcas::view {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Page, ShowsWhatOthersWroteAsText) {
  EXPECT_EQ(escapeXml("<b>&\"\x1b\u202e\nnext"), "&lt;b&gt;&amp;&quot;\\x1b\\u202e\nnext");
  Page page("<title>");
  page.heading("<script>\u009b");
  page.table({{"a"}, {"<i>\x7f"}});
  page.plot({.title = "<svg>", .series = {{.name = "<g>\u2066", .points = {{0, 1}, {1, 2}}}}});
  const std::string html = page.toString();
  EXPECT_EQ(count(html, "<script>"), 1u) << "the page's own";
  for (const char* const tag : {"<title><", "<i>", "<svg>", "<g>"}) {
    EXPECT_EQ(html.find(tag), std::string::npos) << tag;
  }
  for (const char* const obeyed : {"\u009b", "\x7f", "\u2066"}) {
    EXPECT_EQ(html.find(obeyed), std::string::npos);
  }
}

TEST(Plot, OneLinePerSeriesBrokenWhereNothingWasMeasured) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string text =
      svg({.title = "a < b",
           .x_label = "s",
           .y_label = "m",
           .series = {{"one", {{0, 1}, {1, nan}, {2, 3}, {3, 4}}}, {"two", {{0, 2}, {3, 2}}, true}},
           .marks = {{2, "here"}}});
  EXPECT_EQ(count(text, "<path"), 2u);
  EXPECT_NE(text.find("a &lt; b"), std::string::npos);
  EXPECT_NE(text.find(">here<"), std::string::npos);
  const std::size_t path = text.find("<path");
  EXPECT_EQ(count(text.substr(path, text.find("/>", path) - path), "M"), 2u);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_TRUE(text.ends_with("</svg>\n"));
}

TEST(Plot, NothingToShowIsStillAPlot) {
  for (const Plot& plot : {Plot{}, Plot{.series = {{"x", {{5, 0}}}}}}) {
    const std::string text = svg(plot);
    EXPECT_EQ(text.find("nan"), std::string::npos);
    EXPECT_EQ(text.find("inf"), std::string::npos);
  }
}

TEST(Plot, PowersOfTenLeaveOutWhatIsNotAboveZero) {
  const std::string text =
      svg({.series = {{"cdf", {{0, 0}, {1, 0.2}, {10, 0.5}, {1000, 1}}}}, .x_log = true});
  for (const char* tick : {">1<", ">10<", ">100<", ">1000<"}) {
    EXPECT_NE(text.find(tick), std::string::npos) << tick;
  }
  EXPECT_EQ(text.find("inf"), std::string::npos);
  const std::size_t path = text.find("<path");
  EXPECT_EQ(count(text.substr(path, text.find("/>", path) - path), "L"), 2u);
}

TEST(Plot, ALongLegendTakesLines) {
  Plot plot;
  for (int i = 0; i < 12; ++i) plot.series.push_back({"a policy with a name", {{0, 1}, {1, 2}}});
  const std::string text = svg(plot);
  EXPECT_NE(text.find("viewBox=\"0 0 760 292\""), std::string::npos);
  EXPECT_EQ(count(text, ">a policy with a name<"), 12u);
}

TEST(Plot, ALevelIsOneLine) {
  Series held{.name = "limit", .stepped = true};
  for (int i = 0; i < 100; ++i) held.points.push_back({1.0 * i, i < 50 ? 1.0 : 2.0});
  const std::string text = svg({.series = {held}});
  const std::size_t path = text.find("<path");
  EXPECT_EQ(count(text.substr(path, text.find("/>", path) - path), "L"), 3u) << "along, up, along";
}

TEST(Plot, AColourCanBeChosen) {
  const std::string text = svg({.series = {{.name = "x", .points = {{0, 1}}, .colour = 6}}});
  EXPECT_NE(text.find("stroke=\"#000000\""), std::string::npos) << "without a page";
  EXPECT_NE(text.find("class=\"curve c6\""), std::string::npos) << "in a page";
}

TEST(Plot, DotsMarkPoints) {
  EXPECT_EQ(
      count(svg({.series = {{.name = "x", .points = {{0, 1}, {1, 2}}, .dots = true}}}), "<circle"),
      2u);
}

TEST(Page, MarksTheBestAndFolds) {
  Page page("t");
  page.beginFold("more");
  page.table({{"pod", "cpu"}, {"x", "5"}, {"y", "none"}}, {{1, 1}, {2, 1}});
  page.endFold();
  const std::string text = page.toString();
  EXPECT_NE(text.find("<details><summary>more</summary>"), std::string::npos);
  EXPECT_NE(text.find("<td class=\"n best\">5</td>"), std::string::npos);
  EXPECT_NE(text.find("<td class=\"n best\">none</td>"), std::string::npos);
}

TEST(Page, EscapesWhatItIsGiven) {
  Page page("a & b");
  page.heading("<h>");
  page.paragraph("\"q\"");
  page.table({{"pod", "cpu"}, {"<x>", "5"}});
  const std::string text = page.toString();
  EXPECT_NE(text.find("<title>a &amp; b</title>"), std::string::npos);
  EXPECT_NE(text.find("<h2>&lt;h&gt;</h2>"), std::string::npos);
  EXPECT_NE(text.find("<td>&lt;x&gt;</td><td class=\"n\">5</td>"), std::string::npos);
  EXPECT_EQ(text.find("http-equiv"), std::string::npos);
}

}  // namespace
}  // namespace mbcas::view
