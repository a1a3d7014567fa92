#include "mbcas/podallocation/marks.h"

#include <algorithm>
#include <utility>

namespace mbcas::podallocation {
namespace {

constexpr std::string_view kEverything = "*";

}  // namespace

void Marks::add(std::string_view node, std::string_view uid, MonotonicTime now) {
  auto found = nodes_.find(node);
  if (found == nodes_.end()) {
    found = nodes_.emplace(node, std::deque<Mark>{}).first;
    found->second.push_back({next_++, {}, now});
  }
  std::deque<Mark>& marks = found->second;
  // A newer mark of the same object says all that the older one says.
  std::erase_if(marks, [&](const Mark& mark) { return mark.uid == uid || isOld(mark, now); });
  marks.push_back({next_++, std::string(uid), now});
  if (marks.size() > kMostMarks) marks = {{next_++, {}, now}};
}

std::string Marks::text(std::string_view node, MonotonicTime now) {
  std::string text;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return text;
  std::deque<Mark>& marks = found->second;
  std::erase_if(marks, [&](const Mark& mark) { return isOld(mark, now); });
  for (const Mark& mark : marks) {
    if (!text.empty()) text += ' ';
    text += std::to_string(mark.number);
    text += ':';
    text += mark.uid.empty() ? kEverything : std::string_view(mark.uid);
  }
  return text;
}

News MarkReader::read(std::string_view text) {
  News news;
  std::set<std::string, std::less<>> marks;
  if (text.size() > kLongestMarks) return news;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view mark = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = mark.find(':');
    if (colon == std::string_view::npos || colon + 1 == mark.size()) continue;
    marks.emplace(mark);
    if (seen_.contains(mark)) continue;
    const std::string_view uid = mark.substr(colon + 1);
    if (uid == kEverything) {
      news.everything = true;
    } else {
      news.uids.emplace_back(uid);
    }
  }
  seen_ = std::move(marks);
  if (news.everything) news.uids.clear();
  return news;
}

}  // namespace mbcas::podallocation
