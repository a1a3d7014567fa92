// Where the texts and lists of one Kubernetes object live: a few small blocks owned by the object,
// filled once while it is decoded and never changed. A cache of 10,000 pods is mostly such text, so
// a reference to it costs 8 bytes (the length stands in front of the bytes), not the 32 of a
// std::string, and what neighbours have in common is kept once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mbcas::kube {

// Text in an Arena; valid as long as the object that it came with. Empty when absent.
class Str {
 public:
  constexpr Str() = default;
  // `stored` points at a length and that many bytes; null is "". The length is one byte, or, from
  // kLong on, that byte and a std::uint32_t, unaligned.
  explicit Str(const char* stored) : stored_(stored) {}
  static constexpr std::size_t kLong = 255;

  std::string_view view() const {
    if (stored_ == nullptr) return {};
    const auto first = static_cast<unsigned char>(*stored_);
    if (first < kLong) return {stored_ + 1, first};
    std::uint32_t length = 0;
    std::memcpy(&length, stored_ + 1, sizeof length);
    return {stored_ + 1 + sizeof length, length};
  }
  // NOLINTNEXTLINE(google-explicit-constructor): reads as a string_view everywhere
  operator std::string_view() const { return view(); }
  std::string string() const { return std::string(view()); }
  bool empty() const { return view().empty(); }

  friend bool operator==(Str a, std::string_view b) { return a.view() == b; }
  friend bool operator==(Str a, Str b) { return a.view() == b.view(); }

 private:
  const char* stored_ = nullptr;
};

// A list in an Arena, same rules.
template <class T>
class List {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);

 public:
  constexpr List() = default;
  explicit List(const std::uint64_t* stored) : stored_(stored) {}

  std::size_t size() const { return stored_ == nullptr ? 0 : *stored_; }
  bool empty() const { return size() == 0; }
  const T* begin() const {
    return stored_ == nullptr ? nullptr : reinterpret_cast<const T*>(stored_ + 1);
  }
  const T* end() const { return begin() + size(); }
  const T& operator[](std::size_t i) const { return begin()[i]; }

 private:
  const std::uint64_t* stored_ = nullptr;
};

class Pool;

class Arena {
 public:
  // The first block has this many bytes: pass what a similar object needed.
  explicit Arena(std::size_t expected = 256) : left_(static_cast<std::uint32_t>(expected)) {}
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // Text of this object alone: its name, its UID.
  Str text(std::string_view text);
  // Text that other objects are likely to have too: labels, namespaces, names of nodes. Kept once
  // for all of them if there is a pool.
  Str shared(std::string_view text);
  // Text of either sort: shared from the second time on.
  Str perhapsShared(std::string_view text);
  void usePool(std::shared_ptr<Pool> pool) { pool_ = std::move(pool); }

  // From then on what would bring the object beyond so many bytes, shared ones included, is left
  // out: it reads as empty, and overfull() tells.
  void keepAtMost(std::uint32_t bytes) { most_ = bytes; }
  bool overfull() const { return overfull_; }

  template <class T>
  List<T> list(const std::vector<T>& items) {
    return items.empty() || !hasRoomFor(items.size() * sizeof(T)) ? List<T>() : store(items);
  }
  // A list that other objects are likely to have too. All text in it must be shared itself.
  template <class T>
  List<T> sharedList(const std::vector<T>& items);

  std::size_t used() const { return used_; }  // bytes handed out, alignment included

 private:
  friend class Pool;
  // An object that would share more than this keeps the rest itself: what a pool has taken in stays
  // for as long as any of its objects lives.
  static constexpr std::uint32_t kMostShared = 4096;

  bool hasRoomFor(std::size_t bytes);
  bool shares(std::size_t bytes);  // counts them if so
  template <class T>
  List<T> store(const std::vector<T>& items) {
    return List<T>(storeList(items.size(), items.data(), items.size() * sizeof(T)));
  }
  const std::uint64_t* storeList(std::size_t count, const void* items, std::size_t size);
  char* allocate(std::size_t size, std::size_t align);

  char* block_ = nullptr;  // the last; each begins with a pointer to the one before
  char* free_ = nullptr;
  std::uint32_t left_ = 0;  // before the first block: how large to make it
  std::uint32_t used_ = 0;
  std::uint32_t shared_ = 0;  // bytes asked of the pool
  std::uint32_t most_ = std::numeric_limits<std::uint32_t>::max();
  bool overfull_ = false;
  bool alone_ = false;  // has shared enough
  std::shared_ptr<Pool> pool_;
};

// Each text and list once. One thread writes; what it has returned may be read by any, for as long
// as the pool lives, and every object that uses a pool keeps it alive. A pool only grows: its owner
// starts a new one when full(), and the old one goes with its last object.
class Pool {
 public:
  Str text(std::string_view text);
  // Nothing the first time, and now and then the second.
  std::optional<Str> textIfSeen(std::string_view text);
  // `items` is compared byte by byte.
  const std::uint64_t* list(std::size_t count, const void* items, std::size_t size);
  bool full() const { return storage_.used() > kMaxBytes; }

 private:
  static constexpr std::size_t kMaxBytes = 1 << 20;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a == b; }
  };
  Arena storage_{4096};
  std::unordered_set<Str, Hash, Equal> texts_;
  std::unordered_set<std::string_view> lists_;  // their items
  std::array<std::size_t, 256> seen_{};         // hashes of texts, each in its place
};

template <class T>
List<T> Arena::sharedList(const std::vector<T>& items) {
  static_assert(std::has_unique_object_representations_v<T>, "equal items must be equal bytes");
  if (items.empty() || !hasRoomFor(items.size() * sizeof(T))) return {};
  if (!shares(items.size() * sizeof(T))) return store(items);
  return List<T>(pool_->list(items.size(), items.data(), items.size() * sizeof(T)));
}

}  // namespace mbcas::kube
