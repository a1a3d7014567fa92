// What to do about one pod now. A pure function of what is known: the objects, the policy, a small
// memory and the time. The engine around it does the I/O that it names, and asks again whenever
// something changes or the time comes.
//
//   Decision decision = decide(situation, memory);
//
// Order of things, each of which may be the last before a crash; whoever comes next sees the same
// objects and goes on from there:
//   1. the original resources go into the allocation's status and onto the pod (once),
//   2. the resize is sent,
//   3. the kubelet actuates it,
//   4. the status says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/boxed.h"
#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/actuation.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/original_resources.h"
#include "mbcas/podallocation/pod_allocation.h"
#include "mbcas/policy/bounds.h"
#include "mbcas/resize/resize.h"

namespace mbcas::controller {

// What is remembered of a pod between two looks at it. All of it may be lost: what matters is on
// the objects.
struct PodMemory {
  std::int64_t generation = 0;     // of the pod after our last resize: older versions tell nothing
  Boxed<resize::Attempt> attempt;  // sent, not finished
  MonotonicTime attempt_since{};
  std::optional<MonotonicTime> others_since;  // a resize that is not ours is pending since then
  bool reverting = false;                     // the attempt takes back one that failed
  control::ActuationMemory actuation;
  // What we have written into the spec, or found to be ours; nothing: unknown.
  std::optional<std::vector<podallocation::OriginalCpu>> ours;
  std::int64_t asked = 0;  // generation of the pod of which it is known who wrote it
  // Failures: how many in a row, the target that failed, and when to try again.
  int failures = 0;
  Millicores failed_target;
  MonotonicTime retry_at{};
  std::string failure;
};

struct Situation {
  const kube::Pod* pod = nullptr;  // the newest version known
  // Named by the pod's UID; null if there is none.
  const podallocation::PodAllocation* allocation = nullptr;
  policy::PodPolicy policy;
  std::optional<Millicores> start;  // for bounds.start
  double weight = 1;                // for bounds.weight
  control::Settings law;
  bool agent_silent = false;
  bool dry_run = false;
  // How much more the quotas let the pod have now; nothing: no quota.
  std::optional<Millicores> room;
  bool may_raise = true;  // false: its node has raised enough for now
  MonotonicTime now{};
  WallTime wall{};
};

enum class Act : std::uint8_t {
  kNothing,
  kAskWho,          // who wrote the limits that stand in the spec?
  kRecordOriginal,  // write status->original to the allocation's status: before the first resize
  kKeepOriginal,    // copy it to the pod's annotation: after that resize
  kForgetOriginal,  // all is as it was declared, or as another writer has declared it since
  kResize,
};

enum class Purpose : std::uint8_t {
  kManage,
  kRevert,    // the node could not do it
  kRestore,   // not ours any more
  kGiveBack,  // the agent is silent
  kYield,     // another writer has declared other limits
};
std::string_view name(Purpose purpose);

struct Decision {
  Act act = Act::kNothing;
  Purpose purpose = Purpose::kManage;
  resize::Request request;  // kResize
  Millicores from;          // sums before and after
  Millicores to;
  std::optional<podallocation::Status> status;  // as it should be, if there is an object
  std::optional<Nanos> again;                   // look again then, whatever happens
};

// Updates the memory by what it learns from the pod.
Decision decide(const Situation& situation, PodMemory& memory);

// To be called with the end of an attempt to send a resize: remembers it, or the failure.
void remember(const kube::Pod& pod, const Decision& decision, const resize::Outcome& outcome,
              MonotonicTime now, double chance, PodMemory& memory);

// The bounds to publish: the old ones while the new ones differ by less than a tenth, so that not
// every tremor is written to every pod.
podallocation::Bounds publishedBounds(const policy::PodPolicy& policy,
                                      std::optional<Millicores> start, double weight,
                                      const podallocation::Bounds* before);

}  // namespace mbcas::controller
