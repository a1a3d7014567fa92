#include "mbcas/view/screen.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/view/text.h"

namespace mbcas::view {
namespace {

constexpr Millicores kSlight(20);  // throttling below this is none to speak of

std::string milli(Millicores cpu) {
  return fmt::format("{}m", cpu.count());
}

double share(Millicores part, Millicores whole) {
  return whole > Millicores(0) ? part.cores() / whole.cores() : 0;
}

std::string header(const NodeScreen& screen, std::size_t width, bool colours) {
  const std::size_t right = view::width(screen.subtitle);
  if (right + 2 >= width) return paint(fit(screen.title, width), Colour::kBold, colours);
  return paint(fit(screen.title, width - right), Colour::kBold, colours) + screen.subtitle;
}

std::string gauges(const NodeScreen& screen, std::size_t width, bool colours) {
  const std::string price =
      !screen.price ? "overloaded" : fmt::format("price {:.2f}", *screen.price);
  const std::string left = "used ";
  const std::string right = fmt::format(
      " {:.2f} of {:.2f} CPU  {}  {}  fairness {:.2f}", screen.usage.cores(),
      screen.capacity.cores(), screen.scarce ? "scarce" : "not scarce", price, screen.welfare);
  const std::size_t taken = view::width(left) + view::width(right);
  if (taken + 4 > width) return fit(right.substr(1), width);
  return left +
         paint(bar(share(screen.usage, screen.capacity), width - taken),
               screen.scarce ? Colour::kYellow : Colour::kGreen, colours) +
         right;
}

}  // namespace

std::vector<std::string> render(const NodeScreen& screen, std::size_t width, std::size_t height,
                                bool colours) {
  width = std::max<std::size_t>(width, 20);
  std::vector<std::string> lines{header(screen, width, colours), gauges(screen, width, colours),
                                 ""};

  constexpr std::size_t kNumbers = 3 * 8 + 11;  // need, limit, usage, throttled
  std::size_t name = 4;
  for (const PodLine& pod : screen.pods) name = std::max(name, view::width(pod.name));
  name = std::min(name, std::max<std::size_t>(8, width / 3));
  // What is left is shared by a bar, the past, and the reason.
  const std::size_t left = width > name + kNumbers + 2 ? width - name - kNumbers - 2 : 0;
  const std::size_t bars = left >= 14 ? std::min<std::size_t>(left / 3, 24) : 0;
  const std::size_t past = left >= 14 ? std::min<std::size_t>(left - bars - 2, 30) : 0;
  const std::size_t note = left > bars + past + 14 ? left - bars - past - 4 : 0;

  std::string title =
      fit("POD", name) + fitRight("NEED", 8) + fitRight("LIMIT", 8) + fitRight("USED", 8);
  if (bars > 0) title += "  " + fit("OF ITS LIMIT", bars);
  title += fitRight("THROTTLED", 11);
  if (past > 0) title += "  " + fit("PAST", past);
  if (note > 0) title += "  " + fit("WHY", note);
  lines.push_back(paint(title, Colour::kDim, colours));

  Millicores most(100);
  for (const PodLine& pod : screen.pods) {
    for (const double value : pod.throttling) {
      most = std::max(most, Millicores(static_cast<std::int64_t>(value)));
    }
  }
  const std::size_t below = std::min<std::size_t>(screen.notes.size(), 3);
  const std::size_t room =
      height > lines.size() + below + 1 ? height - lines.size() - below - 1 : 1;
  const std::size_t shown = screen.pods.size() <= room ? screen.pods.size() : room - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    const PodLine& pod = screen.pods[i];
    const bool held = pod.throttled >= kSlight;
    std::string line = fit(pod.name, name) + fitRight(milli(pod.need), 8) +
                       fitRight(pod.limit ? milli(*pod.limit) : "none", 8) +
                       fitRight(milli(pod.usage), 8);
    if (bars > 0) {
      line += "  " + paint(bar(pod.limit ? share(pod.usage, *pod.limit) : 0, bars),
                           held ? Colour::kRed : Colour::kGreen, colours);
    }
    line += paint(fitRight(fmt::format("{} ms/s", pod.throttled.count()), 11),
                  held ? Colour::kRed : Colour::kNone, colours);
    if (past > 0) {
      line += "  " + paint(sparkline(pod.throttling, past, static_cast<double>(most.count())),
                           Colour::kCyan, colours);
    }
    if (note > 0) line += "  " + fit(pod.note, note);
    lines.push_back(line);
  }
  if (shown < screen.pods.size()) {
    lines.push_back(fmt::format("… and {} more pods", screen.pods.size() - shown));
  }
  if (below > 0) lines.emplace_back();
  for (std::size_t i = screen.notes.size() - below; i < screen.notes.size(); ++i) {
    lines.push_back(fit(screen.notes[i], width));
  }
  if (lines.size() > height) lines.resize(height);
  return lines;
}

}  // namespace mbcas::view
