// The controller of mbcas/kube/README.md.
#pragma once

#include <atomic>

#include "mbcas/kube/client.h"

namespace example {

// Runs until `stop` is set.
void runStamper(mbcas::kube::Client& client, const std::atomic<bool>& stop);

}  // namespace example
