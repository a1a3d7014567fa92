// `mbcas pods`: what pods there are and whether they are managed, and what they use.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mbcas/cli/record.h"
#include "mbcas/cli/snapshot.h"
#include "mbcas/sense/signals.h"

namespace mbcas::cli {

// One pod of a cluster, or of a machine: then it has a name only if the caller gave one.
struct PodRow {
  std::string name_space;
  std::string pod;
  std::string uid;
  std::string node;
  std::string qos;
  std::optional<Millicores> request;
  std::optional<Millicores> limit;  // nothing: none
  std::string limit_text;
  std::optional<Millicores> declared;
  std::optional<Millicores> floor;
  std::optional<Millicores> ceiling;
  std::string mode;
  std::string managed;  // "yes", "no", "not yet"; empty: not known
  std::string why;      // it is not managed
  std::string remedy;
  std::optional<Nanos> age;
  // Of `pods usage`.
  std::optional<Millicores> usage;
  std::optional<Millicores> throttled;  // thread time held back by limits; only on a machine
  std::optional<double> pressure;       // share of time in which some thread waited for a CPU
};

// What `mbcas pods list` shows of a cluster.
std::vector<PodRow> listRows(const Snapshot& snapshot, WallTime now);
std::string listTable(const std::vector<PodRow>& rows, bool namespaces, bool wide, bool colours);

// Of `mbcas pods usage`: pods that have not finished.
std::vector<PodRow> usageRows(const std::vector<PodPtr>& pods, WallTime now);

// What the kubelet of a node says about its pods (/stats/summary).
struct PodUsage {
  std::string name_space;
  std::string pod;
  std::string uid;
  std::optional<Millicores> usage;
  std::optional<double> pressure;  // PSI of the last 10 s, where the kubelet has it
};
Result<std::vector<PodUsage>> parseSummary(std::string text);
// Adds them to the rows of their pods; by UID.
void addUsage(std::vector<PodRow>& rows, const std::vector<PodUsage>& usages);
// Those who use most first.
void sortByUsage(std::vector<PodRow>& rows);
std::string usageTable(const std::vector<PodRow>& rows, bool namespaces, bool wide, bool colours);

// Pods of a machine: as the kernel sees them, named by the state of an agent where there is one,
// and those of an `mbcas run`.
std::vector<PodRow> hostRows(std::span<const sense::PodSignals> pods, const NodeRecord* agent,
                             const NodeRecord* host);

std::string rowsJson(const std::vector<PodRow>& rows, const std::vector<std::string>& notes);

}  // namespace mbcas::cli
