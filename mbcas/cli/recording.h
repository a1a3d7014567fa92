// A recording: what the page of `mbcas ui` saw, as it saves it, for `mbcas ui FILE`.
//
//   {"mbcasRecording":1,"title":"node-1"}      the first line
//   {"node":"node-1","time":...}               a state of a node, as in record.h
//   {"cluster":{"time":...,"nodes":[...]}}     a picture of a cluster, as in cluster_view.h; those
//                                              after the first one tell only what has changed
//   {"clusterPods":[{"pod":"web-1",...},...]}  pods of the cluster at the end, as in cluster_pods.h
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/cli/cluster_pods.h"

namespace mbcas::cli {

inline constexpr std::size_t kLongestRecording = 64 << 20;  // bytes
inline constexpr std::size_t kMostStates = 7200;            // two hours, one each second
inline constexpr std::size_t kMostPictures = 7200;

struct Recording {
  std::string title;
  // As this version writes states and pictures, whatever version wrote the file. Fields that are
  // not known here are gone.
  std::vector<std::string> states;
  std::vector<std::string> pictures{};
  std::vector<AllocatedPod> pods{};

  friend bool operator==(const Recording&, const Recording&) = default;
};

// An error names the line.
Result<Recording> parseRecording(std::string_view text);
std::string recordingText(const Recording& recording);

}  // namespace mbcas::cli
