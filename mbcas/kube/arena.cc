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
  std::swap(shared_, other.shared_);
  std::swap(most_, other.most_);
  std::swap(overfull_, other.overfull_);
  std::swap(alone_, other.alone_);
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
    const std::uint32_t usual = block_ == nullptr ? left_ : std::max(kFurtherBlock, used_ / 2);
    const std::size_t capacity = std::max<std::size_t>(usual, size);
    char* const block = new char[sizeof(char*) + capacity];  // aligned to 16
    std::memcpy(block, static_cast<const void*>(&block_), sizeof(char*));
    block_ = block;
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

bool Arena::hasRoomFor(std::size_t bytes) {
  if (bytes + used_ + shared_ > most_) overfull_ = true;
  return !overfull_;
}

bool Arena::shares(std::size_t bytes) {
  // Once alone, always: a shared list must not refer to text of this object's own.
  if (!pool_ || bytes + shared_ > kMostShared) alone_ = true;
  if (!alone_) shared_ += static_cast<std::uint32_t>(bytes);
  return !alone_;
}

Str Arena::text(std::string_view text) {
  if (text.empty() || !hasRoomFor(text.size())) return {};
  const auto length = static_cast<std::uint32_t>(text.size());
  const bool is_long = length >= Str::kLong;
  char* const stored = allocate(1 + (is_long ? sizeof length : 0) + length, 1);
  char* bytes = stored;
  *bytes++ = static_cast<char>(is_long ? Str::kLong : length);
  if (is_long) {
    std::memcpy(bytes, &length, sizeof length);
    bytes += sizeof length;
  }
  std::memcpy(bytes, text.data(), length);
  return Str(stored);
}

Str Arena::shared(std::string_view text) {
  if (!hasRoomFor(text.size())) return {};
  return shares(text.size()) ? pool_->text(text) : this->text(text);
}

Str Arena::perhapsShared(std::string_view text) {
  if (!hasRoomFor(text.size())) return {};
  const bool may_share = pool_ && !alone_ && shared_ + text.size() <= kMostShared;
  const std::optional<Str> known = may_share ? pool_->textIfSeen(text) : std::nullopt;
  if (known) shared_ += static_cast<std::uint32_t>(text.size());
  return known ? *known : this->text(text);
}

const std::uint64_t* Arena::storeList(std::size_t count, const void* items, std::size_t size) {
  auto* const stored = reinterpret_cast<std::uint64_t*>(
      allocate(sizeof(std::uint64_t) + size, alignof(std::uint64_t)));
  *stored = count;
  std::memcpy(stored + 1, items, size);
  return stored;
}

Str Pool::text(std::string_view text) {
  if (text.empty()) return {};
  if (const auto found = texts_.find(text); found != texts_.end()) return *found;
  const Str stored = storage_.text(text);
  texts_.insert(stored);
  return stored;
}

std::optional<Str> Pool::textIfSeen(std::string_view text) {
  if (const auto found = texts_.find(text); found != texts_.end()) return *found;
  const std::size_t hash = Hash()(text);
  std::size_t& place = seen_[hash % seen_.size()];
  if (std::exchange(place, hash) != hash) return std::nullopt;
  return this->text(text);
}

const std::uint64_t* Pool::list(std::size_t count, const void* items, std::size_t size) {
  const std::string_view bytes(static_cast<const char*>(items), size);
  if (const auto found = lists_.find(bytes); found != lists_.end()) {
    return reinterpret_cast<const std::uint64_t*>(found->data()) - 1;
  }
  const std::uint64_t* const stored = storage_.storeList(count, items, size);
  lists_.emplace(reinterpret_cast<const char*>(stored + 1), size);
  return stored;
}

}  // namespace mbcas::kube
