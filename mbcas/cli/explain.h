// `mbcas explain`: how a pod came to its limit, from the kernel's counters on, each step with its
// numbers and its rule; and what would have to change for it to get more.
//
// Pure: what is known is put together by the caller, as much as there is of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/cli/record.h"
#include "mbcas/cli/snapshot.h"

namespace mbcas::cli {

struct Evidence {
  std::string name_space;  // empty on a machine without Kubernetes
  std::string pod;
  std::string node;
  // Of a cluster; null where there is none.
  PodPtr object;
  AllocationPtr allocation;
  std::optional<Verdict> verdict;
  // What the agent, or `mbcas run`, saw and decided last, and before it, oldest first.
  std::optional<Decision> decision;
  std::vector<Decision> before;
  std::string source;   // of the decision: "agent on n1", "decision log of mbcas-agent-x"
  std::string trouble;  // why there is no decision, and how to get it
  std::vector<std::string> notes{};  // what could not be read
  WallTime now{};
};

struct Step {
  std::string label;  // "use"
  std::string value;  // "450m"
  std::string rule;   // "median of the last 30 s"
  friend bool operator==(const Step&, const Step&) = default;
};
struct Section {
  std::string title;
  std::vector<Step> steps;
};

struct Explanation {
  std::string headline;
  std::vector<Section> sections;
  std::vector<std::string> more;  // what would have to change for it to get more
};

Explanation explain(const Evidence& evidence);
std::string explanationText(const Explanation& explanation, bool colours, std::size_t width = 0);
std::string explanationJson(const Evidence& evidence, const Explanation& explanation);

}  // namespace mbcas::cli
