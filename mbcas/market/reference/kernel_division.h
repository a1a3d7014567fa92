// The kernel's division again, slow and obvious: water is poured into the tree, at the rates of
// fair queueing, until the next consumer is full. The oracle that the real one is tested against;
// it shares no code with the real one beyond the type of the tree.
#pragma once

#include <span>
#include <vector>

#include "mbcas/market/kernel_division.h"

namespace mbcas::market::reference {

// Needs a tree and a capacity with plain values: no parent that is not earlier, weights above 0,
// nothing negative or not a number.
std::vector<double> divideAsKernel(double capacity, std::span<const CgroupNode> nodes);

}  // namespace mbcas::market::reference
