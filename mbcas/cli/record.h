// What an agent, or `mbcas run`, saw and decided at one tick, read back from the JSON that it
// serves and logs (mbcas/agent/view.h writes it, docs/agent.md lists the fields).
//
//   Result<NodeRecord> node = parseState(text);       // the whole state
//   Result<Decision> decision = parseDecision(line);  // a line of the decision log
//
// Fields that are absent or null are empty here, and those that nobody here knows are passed over,
// so that a command can talk to an agent of another version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas::cli {

struct ContainerRecord {
  std::string name;
  std::optional<Millicores> limit;
  std::optional<Millicores> declared;
  std::optional<Millicores> request;
  std::optional<Millicores> desired;
  Millicores usage;
  Millicores blocked;
  std::int64_t periods = 0;
  std::int64_t throttled_periods = 0;
  Millicores use;
  Millicores use_peak;
  Millicores used_peak;
  Millicores burst;
  std::string burst_state;
  bool binding = false;
  std::int64_t samples = 0;

  friend bool operator==(const ContainerRecord&, const ContainerRecord&) = default;
};

struct BoundsRecord {
  bool managed = false;
  std::optional<Millicores> floor;
  std::optional<Millicores> ceiling;
  std::optional<Millicores> start;
  double weight = 1;
  std::string reason;

  friend bool operator==(const BoundsRecord&, const BoundsRecord&) = default;
};

struct PodRecord {
  std::string name_space;
  std::string pod;
  std::string uid;
  std::optional<Millicores> limit;  // in force
  std::optional<Millicores> declared;
  std::optional<Millicores> desired;
  std::optional<Millicores> answer;
  std::optional<Millicores> wanted;
  std::optional<Millicores> applied;
  bool urgent = false;
  bool constrained = false;
  bool throttled = false;
  std::string basis;  // a control::Basis by name
  std::string reason;
  std::string held_by;     // a control::Hold by name; empty: the limit may go where it should
  std::string left_alone;  // empty: it is managed
  std::optional<Millicores> award;      // what the market gives it
  std::optional<Millicores> by_kernel;  // what the kernel alone would give it
  std::string help;                     // a control::Help::Phase by name; empty: not known
  std::optional<Millicores> claim;      // of a helped pod
  std::vector<std::string> bound_for;   // names of pods that it is bound for, three at most
  Millicores usage;
  Millicores blocked;
  std::optional<double> pressure;
  std::optional<double> contention;
  double weight = 1;
  // The kernel's, as if all consumers of the machine were siblings.
  std::optional<double> kernel_weight;
  std::int64_t priority = 0;
  bool ready = true;
  std::optional<BoundsRecord> bounds;
  std::vector<ContainerRecord> containers;

  friend bool operator==(const PodRecord&, const PodRecord&) = default;
};

struct MarketRecord {
  Millicores capacity;
  bool whole_machine = false;  // unmanaged consumers share the capacity
  Millicores demand;
  bool scarce = false;
  std::string mode;
  std::optional<double> price;  // nothing: overloaded
  double welfare = 1;
  Millicores unmanaged_use;

  friend bool operator==(const MarketRecord&, const MarketRecord&) = default;
};

// A consumer of the machine that is not managed: a cgroup with all that it contains.
struct OtherRecord {
  std::string name;
  Millicores usage;
  std::optional<double> kernel_weight;  // as of a pod

  friend bool operator==(const OtherRecord&, const OtherRecord&) = default;
};

struct NodeRecord {
  std::string node;
  WallTime time{};
  Millicores capacity;
  MarketRecord market;
  std::vector<PodRecord> pods;
  std::vector<OtherRecord> others;  // the largest ones, where they are known
  std::vector<std::string> notes;

  // By "NAMESPACE/POD", or by the name alone where pods have no namespace; null: not there.
  const PodRecord* find(std::string_view name_space, std::string_view pod) const;
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

struct Decision {
  std::string node;
  WallTime time{};
  MarketRecord market;
  PodRecord pod;

  friend bool operator==(const Decision&, const Decision&) = default;
};

// The limit at which the pod would have all that it can use: the largest of its bursts, its peak
// with headroom, and its request, over its containers. Nothing: it has not been measured.
std::optional<Millicores> neededOf(const PodRecord& pod);
Millicores neededOf(const ContainerRecord& container);
// Of a pod of `mbcas run`, in the words of PodAllocation: "Applied", "Pending"; empty: no decision.
std::string hostPhase(const PodRecord& pod);

Result<NodeRecord> parseState(std::string text);
Result<Decision> parseDecision(std::string line);

// The same back as JSON.
void writeRecord(JsonWriter& json, const PodRecord& pod);
void writeRecord(JsonWriter& json, const MarketRecord& market);
std::string stateJson(const NodeRecord& node);

}  // namespace mbcas::cli
