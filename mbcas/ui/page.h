// The page itself: the files of mbcas/ui/page, which the build puts into the binary.
#pragma once

#include <span>
#include <string_view>

namespace mbcas::ui {

struct Asset {
  std::string_view path;  // "/app.js"; "/" is index.html
  std::string_view content_type;
  std::string_view body;
};

std::span<const Asset> assets();

}  // namespace mbcas::ui
