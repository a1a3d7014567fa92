#include "mbcas/base/boxed.h"

#include <gtest/gtest.h>

#include <string>

namespace mbcas {
namespace {

TEST(Boxed, IsLikeAnOptional) {
  static_assert(sizeof(Boxed<std::string>) == sizeof(void*));
  Boxed<std::string> empty;
  EXPECT_FALSE(empty);
  Boxed<std::string> box;
  box = std::string("value");
  ASSERT_TRUE(box.has_value());
  EXPECT_EQ(*box, "value");
  EXPECT_EQ(box->size(), 5u);
  box.reset();
  EXPECT_FALSE(box);
}

TEST(Boxed, CopiesAreApart) {
  Boxed<std::string> one;
  one = std::string("one");
  Boxed<std::string> two = one;
  *two = "two";
  EXPECT_EQ(*one, "one");
  one = two;
  *two = "three";
  EXPECT_EQ(*one, "two");
  two = Boxed<std::string>();
  EXPECT_FALSE(two);
  const Boxed<std::string> moved = std::move(one);
  EXPECT_EQ(*moved, "two");
}

}  // namespace
}  // namespace mbcas
