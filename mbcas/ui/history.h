// The frames that were shown so far, numbered from 1, so that a page that comes late or comes back
// gets what it has not seen. The oldest go first when there are too many.
//
//   history.add(frame);
//   for (auto id = history.next(seen); id; id = history.next(*id)) history.frame(*id)
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace mbcas::ui {

class History {
 public:
  static constexpr std::size_t kMostFrames = 7200;  // two hours, one each second
  static constexpr std::size_t kMostBytes = 64 << 20;

  explicit History(std::size_t most_frames = kMostFrames, std::size_t most_bytes = kMostBytes)
      : most_frames_(most_frames), most_bytes_(most_bytes) {}

  void add(std::string frame);
  // The first that is kept of those after `seen`; nothing: there is none yet.
  std::optional<std::uint64_t> next(std::uint64_t seen) const;
  const std::string& frame(std::uint64_t id) const { return frames_[id - first_]; }

 private:
  std::size_t most_frames_;
  std::size_t most_bytes_;
  std::uint64_t first_ = 1;  // the number of the oldest
  std::size_t bytes_ = 0;
  std::deque<std::string> frames_;
};

}  // namespace mbcas::ui
