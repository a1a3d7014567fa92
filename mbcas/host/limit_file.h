// The CPU limit of a cgroup, written straight to the kernel: cpu.max, or cpu.cfs_quota_us.
#pragma once

#include <string>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kernel/mounts.h"
#include "mbcas/kernel/parse.h"

namespace mbcas::host {

// Writes quota and period. The cgroup must still be the one with this number (Cgroup::id): one
// that was made anew under the same name is somebody else's, and is left alone.
Result<void> writeLimit(const kernel::Mounts& mounts, const std::string& path, std::uint64_t cgroup,
                        const kernel::CpuLimit& limit);

// `millicores` of every `period`, not below the millisecond that is the kernel's smallest quota.
kernel::CpuLimit limitOf(Millicores millicores, Nanos period);

}  // namespace mbcas::host
