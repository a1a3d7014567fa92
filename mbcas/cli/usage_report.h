// `mbcas report`: what was seen over some time, per container of each workload: how far requests
// are from use, how long pods were throttled, which limits should change. From states of agents or
// of an `mbcas run` (record.h), watched or recorded.
//
//   ReportBuilder builder;
//   for each state in its order: builder.add(state);
//   UsageReport report = builder.report();
//   reportText(report, ...), reportJson(report), reportHtml(report)
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/cli/record.h"

namespace mbcas::cli {

// Shares of time by amount, in steps of 5 %.
class UseHistogram {
 public:
  void add(Millicores use, double seconds);
  // The least amount that use was not above for this share of the time, to within 5 %.
  Millicores percentile(double share) const;

 private:
  static constexpr std::size_t kSteps = 300;  // 1.05^300 millicores are 2,270 CPUs
  std::array<float, kSteps> seconds_{};
  double total_ = 0;
};

// Time that a container was seen for, in pod-seconds, and how long it was throttled then.
struct ThrottledTime {
  double seconds = 0;
  double throttled = 0;
  friend bool operator==(const ThrottledTime&, const ThrottledTime&) = default;
};

struct ContainerReport {
  std::string name_space;
  std::string workload;
  std::string container;
  std::size_t pods = 0;
  Millicores mean;  // use
  Millicores p95;
  Millicores most;                    // highest single sample
  std::optional<Millicores> request;  // the newest, of a pod
  std::optional<Millicores> declared;
  std::optional<Millicores> limit;    // in force, the largest at the end
  std::optional<Millicores> desired;  // likewise
  ThrottledTime declared_time;        // while the limit was the declared one, or less
  ThrottledTime raised_time;          // while it was more
  double avoidable = 0;               // pod-seconds throttled while a higher limit was desired
  // What it should request by its use; nothing: what it requests is near that, or it was seen for
  // too short a time to say.
  std::optional<Millicores> recommended;

  // By the recommendation, over all its pods.
  Millicores requestChange() const;
  friend bool operator==(const ContainerReport&, const ContainerReport&) = default;
};

// What a quota still has, as its namespace's status says.
struct QuotaReport {
  std::string name_space;
  std::string quota;
  std::string resource;  // "limits.cpu"
  Millicores hard;
  Millicores used;
  friend bool operator==(const QuotaReport&, const QuotaReport&) = default;
};

struct UsageReport {
  WallTime from{};
  WallTime to{};
  std::vector<std::string> nodes;
  std::vector<ContainerReport> containers;  // by namespace, workload, container
  std::vector<QuotaReport> quotas{};
  std::vector<std::string> notes{};  // for a person: what is missing

  friend bool operator==(const UsageReport&, const UsageReport&) = default;
};

class ReportBuilder {
 public:
  // How a pod's workload is called, by namespace and pod; empty: by the pod's name (workloadName).
  std::map<std::pair<std::string, std::string>, std::string> workloads;

  // States of a node come in the order of their time; others are passed over.
  void add(const NodeRecord& state);
  UsageReport report() const;

 private:
  using Key = std::array<std::string, 3>;  // namespace, workload, container
  struct Pod {
    Millicores request;
    std::optional<Millicores> declared;
    std::optional<Millicores> limit;
    std::optional<Millicores> desired;
    bool asks = false;  // has a request
  };
  struct Container {
    UseHistogram use;
    double use_seconds = 0;  // millicores times seconds
    double seconds = 0;
    Millicores most;
    ThrottledTime declared_time;
    ThrottledTime raised_time;
    double avoidable = 0;
    std::map<std::string, Pod> pods;  // by name, in their newest state
  };

  std::map<std::string, WallTime> last_;  // of each node
  std::optional<WallTime> from_;
  WallTime to_{};
  std::map<Key, Container> containers_;
};

// A pod's name without what a ReplicaSet, DaemonSet or StatefulSet has added: "web" of
// "web-7d4b9c6f5d-x2x8k" and of "web-0". A guess: only the pod's owner is sure.
std::string workloadName(std::string_view pod);

std::string reportText(const UsageReport& report, bool colours);
std::string reportJson(const UsageReport& report);
std::string reportHtml(const UsageReport& report);

}  // namespace mbcas::cli
