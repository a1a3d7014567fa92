#include "mbcas/base/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <limits>
#include <vector>

namespace mbcas {
namespace {

Quantity parsed(std::string_view text) {
  const Result<Quantity> quantity = Quantity::parse(text);
  EXPECT_TRUE(quantity) << text << ": " << quantity.error().message();
  return quantity.value_or(Quantity());
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> columns(1);
  for (const char c : line) {
    if (c == '\t')
      columns.emplace_back();
    else
      columns.back().push_back(c);
  }
  return columns;
}

// Every line of the table is what Kubernetes' own parser made of the text.
TEST(Quantity, AgreesWithKubernetes) {
  std::ifstream table("test/golden/quantity.tsv");
  ASSERT_TRUE(table) << "run from the root of the source tree";
  int cases = 0;
  int refused = 0;
  for (std::string line; std::getline(table, line); ++cases) {
    const std::vector<std::string> row = split(line);
    const Result<Quantity> quantity = Quantity::parse(row[0]);
    if (row[1] == "error") {
      EXPECT_FALSE(quantity) << "\"" << row[0] << "\" read as " << quantity->toString();
      ++refused;
      continue;
    }
    ASSERT_EQ(row.size(), 5U) << line;
    ASSERT_TRUE(quantity) << quantity.error().message();
    EXPECT_EQ(*quantity, parsed(row[1] + "n")) << row[0];
    if (row[2] != "-") {
      EXPECT_EQ(std::to_string(quantity->value()), row[2]) << row[0];
    }
    if (row[3] != "-") {
      EXPECT_EQ(std::to_string(quantity->milliValue()), row[3]) << row[0];
    }
    if (row[4] != "-") {
      EXPECT_EQ(quantity->toString(), row[4]) << row[0];
    }
  }
  EXPECT_GT(cases, 7000);
  EXPECT_GT(refused, 500);
}

TEST(Quantity, SaysWhatIsWrong) {
  EXPECT_EQ(Quantity::parse("1K").error().message(), "not a quantity: \"1K\": unknown suffix");
  EXPECT_EQ(Quantity::parse("").error().message(), "not a quantity: \"\": it is empty");
  EXPECT_EQ(Quantity::parse(".Ei").error().message(), "not a quantity: \".Ei\": it has no digits");
  EXPECT_EQ(Quantity::parse("1e40").error().message(), "not a quantity: \"1e40\": it is too large");
  const std::string endless(Quantity::kMaxText + 1, '0');
  EXPECT_EQ(Quantity::parse(endless).error().message(),
            "not a quantity: \"" + endless.substr(0, 64) + "\": it is too long");
}

TEST(Quantity, ReadsWhatIsTooLargeAsTheLargest) {
  const Quantity most = parsed("170141183460469231731687303715884105727n");
  const std::string digits(Quantity::kMaxText, '9');
  for (const std::string& text : {std::string("1e30"), digits + "E", digits + digits}) {
    ASSERT_TRUE(Quantity::parseSaturating(text)) << text;
    EXPECT_EQ(*Quantity::parseSaturating(text), most) << text;
    EXPECT_EQ(*Quantity::parseSaturating("-" + text) + most, Quantity()) << text;
    EXPECT_FALSE(Quantity::parse(text)) << text;
  }
  EXPECT_EQ(*Quantity::parseSaturating("0.0000001n"), parsed("1n"));
  EXPECT_EQ(*Quantity::parseSaturating("1500m"), parsed("1500m"));
  EXPECT_FALSE(Quantity::parseSaturating("1K"));
}

TEST(Quantity, ComparesByValue) {
  EXPECT_EQ(parsed("0.5"), parsed("500m"));
  EXPECT_EQ(parsed("1Ki"), parsed("1024"));
  EXPECT_LT(parsed("999m"), parsed("1"));
  EXPECT_LT(parsed("-1"), parsed("1n"));
}

TEST(Quantity, PrintsWhereGoLosesTheSuffix) {
  EXPECT_EQ(parsed("1000E").toString(), "1000E");
  EXPECT_EQ(parsed("1e21").toString(), "1e21");
}

TEST(Quantity, AddsInTheFamilyOfTheLeftOperand) {
  EXPECT_EQ((parsed("1Gi") + parsed("1G")).format(), Quantity::Format::kBinarySi);
  EXPECT_EQ((Quantity() + parsed("1Gi")).toString(), "1Gi");
  EXPECT_EQ((parsed("500m") + parsed("1500m")).toString(), "2");
  const Quantity most = parsed("170141183460469231731687303715884105727n");
  EXPECT_EQ(most + parsed("1"), most);
  EXPECT_EQ(parsed("-170141183460469231731687303715884105727n") + parsed("-1"),
            parsed("-170141183460469231731687303715884105727n"));
}

TEST(Quantity, RoundsAwayFromZeroOnBothSides) {
  EXPECT_EQ(parsed("1.0005").milliValue(), 1001);
  EXPECT_EQ(parsed("-1.0005").milliValue(), -1001);
  EXPECT_EQ(parsed("1n").value(), 1);
  EXPECT_EQ(parsed("-1n").value(), -1);
  EXPECT_EQ(parsed("-1Pi").value(), -(std::int64_t{1} << 50));
}

TEST(Quantity, SaturatesAt64Bits) {
  EXPECT_EQ(parsed("1e20").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parsed("-1e20").milliValue(), std::numeric_limits<std::int64_t>::min());
}

RC_GTEST_PROP(Quantity, CanonicalTextReadsBack, (std::int64_t mantissa)) {
  const auto suffix = *rc::gen::element<std::string>("", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi",
                                                     "e3", "e-3", "G");
  const Quantity quantity = parsed(std::to_string(mantissa) + suffix);
  RC_ASSERT(parsed(quantity.toString()) == quantity);
  RC_ASSERT(parsed(quantity.toString()).toString() == quantity.toString());
}

RC_GTEST_PROP(Quantity, MillicoresRoundTrip, (std::int32_t count)) {
  RC_ASSERT(parsed(Quantity(Millicores(count)).toString()).millicores() == Millicores(count));
}

}  // namespace
}  // namespace mbcas
