#include "mbcas/kube/arena.h"

#include <algorithm>

namespace mbcas::kube {
namespace {
constexpr std::size_t kFurtherBlock = 256;
}

char* Arena::allocate(std::size_t size, std::size_t align) {
  std::size_t padding = (align - reinterpret_cast<std::uintptr_t>(free_) % align) % align;
  if (free_ == nullptr || padding + size > left_) {
    const std::size_t block = std::max(next_block_, size);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block));
    next_block_ = kFurtherBlock;
    free_ = blocks_.back().get();  // operator new aligns to 16
    left_ = static_cast<std::uint32_t>(block);
    padding = 0;
  }
  char* const start = free_ + padding;
  free_ = start + size;
  left_ -= static_cast<std::uint32_t>(padding + size);
  used_ += static_cast<std::uint32_t>(padding + size);
  return start;
}

Str Arena::text(std::string_view text) {
  if (text.empty()) return {};
  const auto length = static_cast<std::uint32_t>(text.size());
  char* const stored = allocate(sizeof length + length, 1);
  std::memcpy(stored, &length, sizeof length);
  std::memcpy(stored + sizeof length, text.data(), length);
  return Str(stored);
}

}  // namespace mbcas::kube
