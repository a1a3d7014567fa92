#include "mbcas/view/keys.h"

#include <gtest/gtest.h>

namespace mbcas::view {
namespace {

using Keys = std::vector<Key>;

TEST(Keys, CharactersAndSequences) {
  std::string typed = "q\x1b[A\x1bOB\x1b[5~\x1b[1;5Cx\x1b[H";
  EXPECT_EQ(takeKeys(typed),
            (Keys{key('q'), Key::kUp, Key::kDown, Key::kPageUp, key('x'), Key::kHome}));
  EXPECT_EQ(typed, "");
}

TEST(Keys, ASequenceMayComeInPieces) {
  std::string typed = "a\x1b[";
  EXPECT_EQ(takeKeys(typed), Keys{key('a')});
  typed += "6";
  EXPECT_EQ(takeKeys(typed), Keys{});
  typed += "~";
  EXPECT_EQ(takeKeys(typed), Keys{Key::kPageDown});
}

TEST(Keys, EscapeAlone) {
  std::string typed = "\x1b";
  EXPECT_EQ(takeKeys(typed), Keys{Key::kEscape});
  typed = "\x1bq";
  EXPECT_EQ(takeKeys(typed), (Keys{Key::kEscape, key('q')}));
}

}  // namespace
}  // namespace mbcas::view
