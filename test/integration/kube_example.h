#pragma once

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "mbcas/kube/client.h"

namespace mbcas::test {

void runStamper(kube::Client& client, const std::atomic<bool>& stop);

}  // namespace mbcas::test
