// /proc/stat, opened once and read many times.
//
//   ProcStat stat("/proc");
//   ReadResult<MachineTime> time = stat.time();
#pragma once

#include <string>
#include <vector>

#include "mbcas/kernel/cgroup_reader.h"
#include "mbcas/kernel/file.h"

namespace mbcas::kernel {

class ProcStat final : public MachineReader {
 public:
  explicit ProcStat(const std::string& proc) : path_(proc + "/stat") {}

  // Allocates nothing after the first reading.
  ReadResult<MachineTime> time() override;

 private:
  std::string path_;
  Fd file_;
  std::vector<char> buffer_;
};

}  // namespace mbcas::kernel
