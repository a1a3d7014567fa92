#include "mbcas/kube/arena.h"

#include <algorithm>

namespace mbcas::kube {
namespace {
constexpr std::uint32_t kFurtherBlock = 128;
}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(free_, other.free_);
  std::swap(left_, other.left_);
  std::swap(used_, other.used_);
  std::swap(next_block_, other.next_block_);
  std::swap(pool_, other.pool_);
  return *this;
}

Arena::~Arena() {
  while (block_ != nullptr) {
    char* before = nullptr;
    std::memcpy(static_cast<void*>(&before), block_, sizeof before);
    delete[] block_;
    block_ = before;
  }
}

char* Arena::allocate(std::size_t size, std::size_t align) {
  std::size_t padding = (align - reinterpret_cast<std::uintptr_t>(free_) % align) % align;
  if (block_ == nullptr || padding + size > left_) {
    const std::size_t capacity = std::max<std::size_t>(next_block_, size);
    char* const block = new char[sizeof(char*) + capacity];  // aligned to 16
    std::memcpy(block, static_cast<const void*>(&block_), sizeof(char*));
    block_ = block;
    next_block_ = std::max(kFurtherBlock, used_ / 2);
    free_ = block + sizeof(char*);
    left_ = static_cast<std::uint32_t>(capacity);
    padding = 0;
  }
  char* const start = free_ + padding;
  free_ = start + size;
  left_ -= static_cast<std::uint32_t>(padding + size);
  used_ += static_cast<std::uint32_t>(padding + size);
  return start;
}

Str Arena::shared(std::string_view text) {
  return pool_ ? pool_->intern(text) : this->text(text);
}

Str StringPool::intern(std::string_view text) {
  if (text.empty()) return {};
  if (const auto found = texts_.find(text); found != texts_.end()) return *found;
  const Str stored = storage_.text(text);
  texts_.insert(stored);
  return stored;
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
