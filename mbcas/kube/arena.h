// Where the texts and lists of one Kubernetes object live: a few small blocks owned by the object,
// filled once while it is decoded and never changed. A cache of 10,000 pods is mostly such text, so
// a reference to it costs 8 bytes (the length stands in front of the bytes), not the 32 of a
// std::string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
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
  // `stored` points at a std::uint32_t length and that many bytes, unaligned; null is "".
  explicit Str(const char* stored) : stored_(stored) {}

  std::string_view view() const {
    if (stored_ == nullptr) return {};
    std::uint32_t length = 0;
    std::memcpy(&length, stored_, sizeof length);
    return {stored_ + sizeof length, length};
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

class StringPool;

class Arena {
 public:
  // The first block has this many bytes: pass what a similar object needed.
  explicit Arena(std::size_t expected = 256) : next_block_(static_cast<std::uint32_t>(expected)) {}
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // Text of this object alone: its name, its UID.
  Str text(std::string_view text);
  // Text that other objects are likely to have too: labels, namespaces, names of nodes. Kept once
  // for all of them if there is a pool.
  Str shared(std::string_view text);
  void usePool(std::shared_ptr<StringPool> pool) { pool_ = std::move(pool); }

  template <class T>
  List<T> list(const std::vector<T>& items) {
    if (items.empty()) return {};
    auto* stored = reinterpret_cast<std::uint64_t*>(
        allocate(sizeof(std::uint64_t) + items.size() * sizeof(T), alignof(std::uint64_t)));
    *stored = items.size();
    std::memcpy(stored + 1, items.data(), items.size() * sizeof(T));
    return List<T>(stored);
  }

  std::size_t used() const { return used_; }  // bytes handed out, alignment included

 private:
  char* allocate(std::size_t size, std::size_t align);

  char* block_ = nullptr;  // the last; each begins with a pointer to the one before
  char* free_ = nullptr;
  std::uint32_t left_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t next_block_ = 0;
  std::shared_ptr<StringPool> pool_;
};

// Each text once. One thread writes; what it has returned may be read by any, for as long as the
// pool lives, and every object that uses a pool keeps it alive. A pool only grows: its owner starts
// a new one when full(), and the old one goes with its last object.
class StringPool {
 public:
  Str intern(std::string_view text);
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
};

}  // namespace mbcas::kube
