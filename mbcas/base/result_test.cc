#include "mbcas/base/result.h"

#include <gtest/gtest.h>

namespace mbcas {
namespace {

Result<int> parse(bool good) {
  if (!good) return failure("not a number: \"x\"");
  return 7;
}

Result<int> load(bool good) {
  Result<int> value = parse(good);
  if (!value) return failure(std::move(value).error().within("line 3").within("loading a.yaml"));
  return *value + 1;
}

TEST(Result, CarriesAValue) {
  EXPECT_EQ(load(true).value(), 8);
}

TEST(Result, CollectsContextOutermostFirst) {
  EXPECT_EQ(load(false).error().message(), "loading a.yaml: line 3: not a number: \"x\"");
}

}  // namespace
}  // namespace mbcas
