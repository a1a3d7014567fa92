#include "mbcas/kernel/cpu_set.h"

#include <fmt/format.h>

#include "mbcas/kernel/text.h"

namespace mbcas::kernel {

std::string CpuSet::toString() const {
  std::string text;
  for (unsigned first = 0; first < kMost; ++first) {
    if (!contains(first)) continue;
    unsigned last = first;
    while (contains(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return text;
}

Result<CpuSet> parseCpuList(std::string_view text) {
  CpuSet set;
  std::string_view rest = onlyLine(text);
  if (rest.ends_with(',')) return notUnderstood("not a list of CPUs", text);
  while (!rest.empty()) {
    std::string_view end = cut(rest, ',');
    const bool range = end.find('-') != std::string_view::npos;
    const std::string_view begin = cut(end, '-');
    std::uint64_t first = 0;
    if (!toNumber(begin, first)) return notUnderstood("not a list of CPUs", text);
    std::uint64_t last = first;
    if (range && !toNumber(end, last)) return notUnderstood("not a list of CPUs", text);
    if (last < first || last >= CpuSet::kMost) return notUnderstood("not a list of CPUs", text);
    set.add(static_cast<unsigned>(first), static_cast<unsigned>(last));
  }
  return set;
}

}  // namespace mbcas::kernel
