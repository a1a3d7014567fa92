// The control law of one node: from what its pods need to the limits that they should have.
//
//   NodeLaw law(settingsOf(Profile::kResponsive));
//   every second:
//     const NodeDecision& decision = law.decide(input);
//     for every pod whose `publish` is set: publish `desired`
//
// How a limit goes from where it is to `desired` is actuation.h's business.
//
// Pure: no I/O, no clock, no randomness. The same inputs give the same decisions, and all that is
// remembered between them is a NodeState, which can be saved and restored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/units.h"
#include "mbcas/control/help.h"
#include "mbcas/control/input.h"
#include "mbcas/control/intervention.h"
#include "mbcas/control/reason.h"
#include "mbcas/control/settings.h"
#include "mbcas/demand/window.h"
#include "mbcas/market/solver.h"

namespace mbcas::control {

struct PodDecision {
  Millicores limit;          // in force
  Millicores answer;         // of this tick, unfiltered
  Millicores desired;        // what is published: moves only past the hysteresis, and not too often
  Millicores wanted;         // without floor and ceiling, in steps of 10 %
  bool publish = false;      // desired or wanted changed at this tick
  bool urgent = false;       // throttled, and the answer is well above the limit in force
  bool constrained = false;  // gets less than it could use
  bool throttled = false;
  bool fresh = false;                     // its numbers were good enough for a decision
  Help::Phase help = Help::Phase::kNone;  // whether other pods are bound for it
  Millicores award;                       // what the market gives it
  // Where limits are not cleared: what the kernel alone would give it with free limits, ...
  std::optional<Millicores> by_kernel{};
  std::optional<Millicores> claim{};     // ... the demand that a helped pod should meet, ...
  std::vector<std::string> bound_for{};  // ... and the ids of pods that it is bound for, some
  std::vector<Millicores> containers{};  // `desired`, in the order of the input
  Reason reason;                         // of `desired`

  friend bool operator==(const PodDecision&, const PodDecision&) = default;
};

struct NodeDecision {
  Millicores capacity;         // what is shared: by all consumers of the machine, or ...
  bool whole_machine = false;  // false: ... by the managed pods together (C)
  Millicores demand;           // median of their usage and blocked work
  bool scarce = false;
  std::optional<market::Mode> mode{};  // of the clearing, where one took place
  std::optional<double> price = 0.0;
  double welfare = 1;  // weighted geometric mean of what each may use over what it could
  std::vector<PodDecision> pods{};  // in the order of the input

  friend bool operator==(const NodeDecision&, const NodeDecision&) = default;
};

// A bound pod names at most so many of its beneficiaries.
inline constexpr std::size_t kMostNamed = 3;

// What the law remembers of a pod.
struct PodState {
  Millicores desired;  // last published; 0: never
  std::optional<MonotonicTime> desired_since{};
  std::vector<Millicores> containers{};
  Millicores declared;  // it was decided under this one
  Millicores wanted;
  Reason reason{};
  std::optional<MonotonicTime> published{};  // the last time, even if only the wanted limit changed
  std::optional<MonotonicTime> low_since{};  // the answer has been below desired since
  Millicores low_most;                       // the highest it was since
  std::optional<MonotonicTime> off_since{};  // constrained, and not quite what the market says
  std::optional<MonotonicTime> lowered{};    // since when the need was low that it was lowered for
  Nanos patience{0};                         // so long a lower need has to last; 0: the default
  bool constrained = false;
  Help help{};
  std::uint32_t hungry = 0;  // at the last 32 samples, a bit each
  bool held = false;         // its raise ends at its award, for the sake of others
  Millicores demand;         // as last seen while that did not cut it off
  Millicores peak;           // likewise
};

// What the law remembers of a consumer that is not managed.
struct ConsumerState {
  demand::Window use{};
  std::uint32_t hungry = 0;
  bool seen = true;
};

struct NodeState {
  demand::Window demand{};  // usage and blocked work of all pods
  demand::Window unmanaged{};
  std::optional<MonotonicTime> last{};
  bool scarce = false;
  std::map<std::string, PodState, std::less<>> pods{};
  std::map<std::string, ConsumerState, std::less<>> consumers{};
  bool binds = false;            // some pod is bound now
  std::uint64_t participants{};  // a digest of who takes part, with which factors
};

struct Answer;
struct PodView;

class NodeLaw {
 public:
  explicit NodeLaw(const Settings& settings, NodeState state = {});
  ~NodeLaw();
  NodeLaw(NodeLaw&&) noexcept;
  NodeLaw& operator=(NodeLaw&&) noexcept;

  // A pod that a predecessor decided about goes on from there: to be called before the first
  // decision about it. A constrained one says that CPU was scarce, and it is until enough has been
  // measured to say otherwise.
  void resume(const std::string& id, const PodState& state);

  // Once per sample. The reference is good until the next call.
  const NodeDecision& decide(const NodeInput& input);

  const Settings& settings() const { return settings_; }
  const NodeState& state() const { return state_; }

 private:
  void measure(const NodeInput& input);
  void clear(const NodeInput& input);
  void survey(const NodeInput& input);
  void findHungry(const NodeInput& input, std::span<const Cgroup> machine);
  void describe(const NodeInput& input, std::span<const Cgroup> machine);
  void intervene(const NodeInput& input);
  void decidePod(const NodeInput& input, std::size_t i);
  void tellIntervention(const NodeInput& input, std::size_t i, PodDecision& decision) const;
  Answer answerFor(const Pod& pod, std::size_t i, const PodState& state,
                   std::vector<Millicores>& needs) const;
  void forgetOthers(const NodeInput& input);

  Settings settings_;
  NodeState state_;
  NodeDecision decision_;
  std::vector<PodView> views_;      // of the input's pods, in order
  std::vector<Millicores> awards_;  // likewise
  Intervener intervener_;
  Intervention intervention_;
  std::vector<Cgroup> flat_;         // the tree where none was sensed
  std::vector<Consumer> consumers_;  // of the machine, in its order
  std::vector<std::size_t> places_;  // of each pod in the tree
  Nanos interval_{0};                // since the last decision
  market::Solver solver_;
  market::Problem problem_;
  market::Clearing clearing_;
};

}  // namespace mbcas::control
