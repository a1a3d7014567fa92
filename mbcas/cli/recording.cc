#include "mbcas/cli/recording.h"

#include <fmt/format.h>

#include "mbcas/base/json_writer.h"
#include "mbcas/cli/record.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {
namespace {

constexpr std::int64_t kVersion = 1;

Result<std::string> parseTitle(std::string line) {
  std::int64_t version = 0;
  std::string title;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(line, [&](kube::JsonCursor root) {
    root.members([&](std::string_view key, kube::JsonCursor value) {
      if (key == "mbcasRecording") version = value.integer();
      if (key == "title") title = value.text();
    });
  });
  if (!parsed || version == 0) {
    return failure("not a recording: it does not begin with {\"mbcasRecording\":1,...}");
  }
  if (version != kVersion) return failure("a recording of a later version of mbcas");
  return title;
}

Result<std::string> parseLine(std::string line) {
  const Result<NodeRecord> state = parseState(std::move(line));
  if (!state) return failure(state.error());
  if (state->time == WallTime{}) return failure("a state without a time");
  return stateJson(*state);
}

}  // namespace

Result<Recording> parseRecording(std::string_view text) {
  if (text.size() > kLongestRecording) {
    return failure(fmt::format("a recording has {} bytes at most", kLongestRecording));
  }
  Recording recording;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (number > 1 && line.empty()) continue;
    if (recording.states.size() == kMostStates) {
      return failure(fmt::format("a recording has {} states at most", kMostStates));
    }
    Result<std::string> parsed =
        number == 1 ? parseTitle(std::move(line)) : parseLine(std::move(line));
    if (!parsed) return failure(Error(parsed.error()).within(fmt::format("line {}", number)));
    if (number == 1) {
      recording.title = *std::move(parsed);
    } else {
      recording.states.push_back(*std::move(parsed));
    }
  }
  if (recording.states.empty()) return failure("not a recording: it has no states");
  return recording;
}

std::string recordingText(const Recording& recording) {
  std::string text;
  JsonWriter json(text);
  json.beginObject();
  json.key("mbcasRecording").value(kVersion);
  json.key("title").value(recording.title);
  json.endObject();
  text += '\n';
  for (const std::string& state : recording.states) text += state + '\n';
  return text;
}

}  // namespace mbcas::cli
