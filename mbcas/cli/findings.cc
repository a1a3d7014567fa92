#include "mbcas/cli/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/base/json_writer.h"
#include "mbcas/cli/words.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

using Level = Finding::Level;

view::Colour colourOf(Level level) {
  switch (level) {
    case Level::kGood:
      return view::Colour::kGreen;
    case Level::kNote:
      return view::Colour::kYellow;
    case Level::kProblem:
      break;
  }
  return view::Colour::kRed;
}

}  // namespace

std::string_view name(Level level) {
  switch (level) {
    case Level::kGood:
      return "ok";
    case Level::kNote:
      return "note";
    case Level::kProblem:
      break;
  }
  return "problem";
}

bool healthy(const Findings& findings) {
  return std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.level == Level::kProblem; });
}

std::string findingsText(const Findings& findings, bool colours, std::size_t width) {
  std::size_t area = 0;
  for (const Finding& finding : findings) area = std::max(area, view::width(finding.area));
  constexpr std::size_t kLevel = 7;
  const std::size_t indent = area + 2 + kLevel + 2;
  const std::string blanks(indent, ' ');
  const std::size_t room = width > indent + 20 ? width - indent : 0;
  std::string text;
  const auto paragraph = [&](const std::string& words) {
    bool first = true;
    for (const std::string& line : view::wrap(words, room)) {
      text += (first ? "" : blanks) + line + "\n";
      first = false;
    }
  };
  std::size_t problems = 0;
  for (const Finding& finding : findings) {
    problems += finding.level == Level::kProblem ? 1 : 0;
    text += view::fit(finding.area, area) + "  " +
            view::paint(view::fit(name(finding.level), kLevel), colourOf(finding.level), colours) +
            "  ";
    paragraph(finding.what);
    if (finding.remedy.empty()) continue;
    text += blanks;
    paragraph("-> " + finding.remedy);
  }
  return text + "\n" + (problems == 0 ? "no problems" : countText(problems, "problem")) + "\n";
}

std::string findingsJson(const Findings& findings) {
  std::string out;
  JsonWriter json(out);
  json.beginObject().key("healthy").value(healthy(findings)).key("findings").beginArray();
  for (const Finding& finding : findings) {
    json.beginObject();
    json.key("level").value(name(finding.level));
    json.key("area").value(finding.area);
    json.key("what").value(finding.what);
    if (!finding.remedy.empty()) json.key("remedy").value(finding.remedy);
    json.endObject();
  }
  json.endArray().endObject();
  return out;
}

std::string namesText(std::span<const std::string> names, std::size_t most) {
  const std::size_t shown = names.size() <= most + 1 ? names.size() : most;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace mbcas::cli
