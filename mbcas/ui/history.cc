#include "mbcas/ui/history.h"

#include <algorithm>
#include <utility>

namespace mbcas::ui {

void History::add(std::string frame) {
  bytes_ += frame.size();
  frames_.push_back(std::move(frame));
  // The newest stays, however long it is.
  while (frames_.size() > 1 && (frames_.size() > most_frames_ || bytes_ > most_bytes_)) {
    bytes_ -= frames_.front().size();
    frames_.pop_front();
    ++first_;
  }
}

std::optional<std::uint64_t> History::next(std::uint64_t seen) const {
  if (frames_.empty()) return std::nullopt;
  const std::uint64_t last = first_ + frames_.size() - 1;
  if (seen >= last) return std::nullopt;
  return std::max(seen + 1, first_);
}

}  // namespace mbcas::ui
