// For tests that assert that something allocates nothing. Linked into such a test, it replaces
// operator new by one that counts.
#pragma once

#include <cstdint>

namespace mbcas {
std::uint64_t allocationsSoFar();
}  // namespace mbcas
