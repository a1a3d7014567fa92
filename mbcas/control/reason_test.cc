#include "mbcas/control/reason.h"

#include <gtest/gtest.h>

#include <limits>

namespace mbcas::control {
namespace {

TEST(Reason, ThePriceCanBeReadBack) {
  for (const Basis basis : {Basis::kConstrained, Basis::kCleared}) {
    const auto said = [&](std::optional<double> price) {
      return priceIn(sentence({.basis = basis, .award = Millicores(300), .price = price}));
    };
    for (const double price : {0.0, 0.25, 1.02, 12345.0, 1e-7}) {
      const std::optional<SaidPrice> read = said(price);
      ASSERT_TRUE(read && read->price) << price;
      EXPECT_NEAR(*read->price, price, price * 0.01);
    }
    EXPECT_EQ(said(std::nullopt), SaidPrice{});
    EXPECT_EQ(said(std::numeric_limits<double>::infinity()), SaidPrice{});
  }
}

TEST(Reason, OthersHaveNoPrice) {
  for (const Basis basis : {Basis::kDeclared, Basis::kUse, Basis::kBurst, Basis::kWholeCpus,
                            Basis::kFloor, Basis::kCeiling, Basis::kAward, Basis::kNoData}) {
    EXPECT_EQ(priceIn(sentence({.basis = basis})), std::nullopt);
  }
  for (const char* text : {"", " at price ", "x at price 1x", "x at price -1", "x at price nan",
                           "x at price inf", "x at price 0.25, says somebody"}) {
    EXPECT_EQ(priceIn(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace mbcas::control
