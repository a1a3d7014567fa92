// What the loop of a node decided, in the words of a record. An `mbcas run` and a simulation share
// it.
#pragma once

#include <optional>
#include <vector>

#include "mbcas/cli/record.h"
#include "mbcas/control/law.h"
#include "mbcas/demand/need.h"

namespace mbcas::cli {

// So many unmanaged consumers are named.
inline constexpr std::size_t kMostOthers = 12;

// All that the decision says; `bound_for` apart, because it has ids and not names.
void writeDecision(const control::PodDecision& decision, PodRecord& pod);
void writeNeed(const demand::Need& need, ContainerRecord& container);
MarketRecord marketOf(const control::NodeDecision& decision, Millicores unmanaged_use);
// The kernel's weights of the managed pods, in the order of the input, as if all consumers of the
// machine were siblings: a cgroup's weight is divided over its children by theirs.
std::vector<std::optional<double>> kernelWeightsOf(const control::NodeInput& input);
// Consumers that are not managed and are none of these pods, the largest first.
std::vector<OtherRecord> othersOf(const control::NodeInput& input,
                                  const std::vector<PodRecord>& pods);

}  // namespace mbcas::cli
