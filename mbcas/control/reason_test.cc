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

TEST(Reason, TheUseCanBeReadBack) {
  const auto said = [](Basis basis) {
    return useIn(sentence({.basis = basis,
                           .use = Millicores(120),
                           .use_peak = Millicores(150),
                           .burst = Millicores(900),
                           .declared = Millicores(500)}));
  };
  for (const Basis basis : {Basis::kUse, Basis::kBurst, Basis::kFloor}) {
    EXPECT_EQ(said(basis), Millicores(120)) << name(basis);
  }
  EXPECT_EQ(said(Basis::kDeclared), Millicores(150));
  for (const Basis basis : {Basis::kNoData, Basis::kWarmup, Basis::kStart, Basis::kCeiling,
                            Basis::kConstrained, Basis::kAward, Basis::kCleared}) {
    EXPECT_EQ(said(basis), std::nullopt) << name(basis);
  }
  for (const char* text : {"", "uses ", "uses m", "uses 12", "uses -3m", "uses much", "it uses 5m",
                           "uses 99999999999999999999m"}) {
    EXPECT_EQ(useIn(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace mbcas::control
