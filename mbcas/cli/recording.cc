#include "mbcas/cli/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "mbcas/base/json_writer.h"
#include "mbcas/cli/cluster_view.h"
#include "mbcas/cli/record.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {
namespace {

constexpr std::int64_t kVersion = 1;
// Times are written in whole seconds or less, and one that is written as 0 would be none.
constexpr WallTime kEarliest{std::chrono::seconds(1)};
constexpr std::string_view kPicture = R"({"cluster":)";
constexpr std::string_view kPods = R"({"clusterPods":)";

Result<void> readTitle(Recording& recording, std::string line) {
  std::int64_t version = 0;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(line, [&](kube::JsonCursor root) {
    root.members([&](std::string_view key, kube::JsonCursor value) {
      if (key == "mbcasRecording") version = value.integer();
      if (key == "title") recording.title = value.text();
    });
  });
  if (!parsed || version == 0) {
    return failure("not a recording: it does not begin with {\"mbcasRecording\":1,...}");
  }
  if (version != kVersion) return failure("a recording of a later version of mbcas");
  return {};
}

Result<void> addState(Recording& recording, std::string line) {
  if (recording.states.size() == kMostStates) {
    return failure(fmt::format("a recording has {} states at most", kMostStates));
  }
  const Result<NodeRecord> state = parseState(std::move(line));
  if (!state) return failure(state.error());
  if (state->time < kEarliest) return failure("a state without a time");
  recording.states.push_back(stateJson(*state));
  return {};
}

Result<void> addPicture(Recording& recording, std::string line) {
  if (recording.pictures.size() == kMostPictures) {
    return failure(fmt::format("a recording has {} pictures of a cluster at most", kMostPictures));
  }
  ClusterView view;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(line, [&](kube::JsonCursor root) {
    root.members([&](std::string_view key, kube::JsonCursor value) {
      if (key == "cluster") view = readCluster(value);
    });
  });
  if (!parsed) return parsed;
  if (view.time < kEarliest) return failure("a picture of a cluster without a time");
  recording.pictures.push_back(clusterJson(view));
  return {};
}

Result<void> addPods(Recording& recording, std::string line) {
  kube::JsonParser parser;
  return parser.parse(line, [&](kube::JsonCursor root) {
    root.members([&](std::string_view key, kube::JsonCursor value) {
      if (key != "clusterPods") return;
      value.elements(
          [&](kube::JsonCursor pod) { recording.pods.push_back(readAllocatedPod(pod)); });
    });
  });
}

Result<void> addLine(Recording& recording, std::string line) {
  if (line.starts_with(kPicture)) return addPicture(recording, std::move(line));
  if (line.starts_with(kPods)) return addPods(recording, std::move(line));
  return addState(recording, std::move(line));
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
    const Result<void> done =
        number == 1 ? readTitle(recording, std::move(line)) : addLine(recording, std::move(line));
    if (!done) return failure(Error(done.error()).within(fmt::format("line {}", number)));
  }
  if (recording.states.empty() && recording.pictures.empty()) {
    return failure("not a recording: it has no states");
  }
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
  for (const std::string& picture : recording.pictures) {
    text += fmt::format("{}{}}}\n", kPicture, picture);
  }
  for (const AllocatedPod& pod : recording.pods) {
    text += kPods;
    text += '[';
    JsonWriter row(text);
    writeAllocatedPod(row, pod);
    text += "]}\n";
  }
  for (const std::string& state : recording.states) text += state + '\n';
  return text;
}

}  // namespace mbcas::cli
