// What must be true before the agent can work; else what is missing, and what to do about it.
#pragma once

#include <string>

#include "mbcas/base/result.h"
#include "mbcas/kernel/mounts.h"
#include "mbcas/kube/client.h"

namespace mbcas::agent {

struct ClusterCheck {
  enum class Verdict {
    kGood,
    kUnreachable,  // the server does not answer: ask again later
    kWrong,        // it answers, and a person has to act
  };
  Verdict verdict = Verdict::kGood;
  std::string message{};
};

// Waits for answers.
ClusterCheck checkCluster(kube::Client& client, const std::string& node,
                          const std::string& name_space, bool dry_run);

// The cgroup tree is there and can be read.
Result<kernel::Mounts> checkCgroups(const std::string& root);

}  // namespace mbcas::agent
