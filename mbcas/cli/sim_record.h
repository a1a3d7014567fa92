// A simulated node in the same words as an agent, so that what shows the one shows the other.
//
//   RecordingPolicy policy(*sim::makePolicy("responsive", scenario.cpus));
//   sim::Simulation simulation(scenario, policy);
//   while (simulation.step()) show(policy.record());
#pragma once

#include <memory>

#include "mbcas/cli/record.h"
#include "mbcas/sim/policy.h"

namespace mbcas::cli {

// The policy that it is made from, and what that saw and decided last.
class RecordingPolicy final : public sim::Policy {
 public:
  explicit RecordingPolicy(std::unique_ptr<sim::Policy> policy) : policy_(std::move(policy)) {}

  // Its name and its time are left to the caller.
  const NodeRecord& record() const { return record_; }

  std::string_view name() const override { return policy_->name(); }
  std::optional<Millicores> firstLimit(Millicores declared, unsigned cpus) const override {
    return policy_->firstLimit(declared, cpus);
  }
  double weight(const sim::PodSpec& spec) const override { return policy_->weight(spec); }
  double burst() const override { return policy_->burst(); }
  bool writesCgroups() const override { return policy_->writesCgroups(); }
  std::vector<sim::Move> decide(const sim::NodeView& node) override;
  std::vector<sim::Scale> scale(const sim::NodeView& node) override { return policy_->scale(node); }
  int probing() const override { return policy_->probing(); }
  const control::NodeDecision* decision() const override { return policy_->decision(); }
  const node::Loop* loop() const override { return policy_->loop(); }

 private:
  std::unique_ptr<sim::Policy> policy_;
  NodeRecord record_;
};

}  // namespace mbcas::cli
