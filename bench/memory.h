// What the memory of this process takes.
#pragma once

#include <unistd.h>

#include <fstream>

namespace mbcas::bench {

inline long residentBytes() {
  long size = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace mbcas::bench
