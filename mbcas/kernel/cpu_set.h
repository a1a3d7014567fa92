// A set of CPUs, as the kernel writes it: "0-3,8".
//
//   Result<CpuSet> set = parseCpuList("0-3,8\n");
//   set->count();                          // 5
//   (*set & other).count() == 0;           // the two share no CPU
//
// A value of fixed size: a set is read again and again without an allocation.
#pragma once

#include <bitset>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"

namespace mbcas::kernel {

class CpuSet {
 public:
  static constexpr unsigned kMost = 1024;  // CPUs of a machine

  // Both ends included; both below kMost.
  void add(unsigned first, unsigned last) {
    for (unsigned cpu = first; cpu <= last; ++cpu) bits_.set(cpu);
  }
  bool contains(unsigned cpu) const { return cpu < kMost && bits_.test(cpu); }
  unsigned count() const { return static_cast<unsigned>(bits_.count()); }
  bool empty() const { return bits_.none(); }

  CpuSet& operator|=(const CpuSet& other) {
    bits_ |= other.bits_;
    return *this;
  }
  CpuSet& operator&=(const CpuSet& other) {
    bits_ &= other.bits_;
    return *this;
  }
  friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
  friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
  friend bool operator==(const CpuSet&, const CpuSet&) = default;

  std::string toString() const;  // as the kernel writes it; "" for the empty set

 private:
  std::bitset<kMost> bits_;
};

// The text of cpuset.cpus.effective (v2), cpuset.effective_cpus or cpuset.cpus (v1). An empty line
// is the empty set. Pure; an error quotes the text, as those of parse.h do.
Result<CpuSet> parseCpuList(std::string_view text);

}  // namespace mbcas::kernel
