// A load of known demand in a cgroup of the test: a child process, ended with the object or with
// the test, whichever comes first.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace mbcas::test {

// Every thread is owed `on` of CPU time each `period`, whether or not it got the last one: work is
// carried over, but a thread more than two periods late drops its backlog. on == period: it never
// sleeps.
struct LoadShape {
  int threads = 1;
  std::chrono::microseconds on{1000};
  std::chrono::microseconds period{1000};
  std::chrono::milliseconds delay{0};  // before it begins

  bool saturated() const { return on == period; }
  // In cores, on a machine that has so many.
  double demand(unsigned cpus) const;
};

class Burner {
 public:
  // `cgroups`: directories of one cgroup in every hierarchy.
  Burner(const LoadShape& shape, const std::vector<std::string>& cgroups);
  ~Burner();
  Burner(Burner&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  Burner& operator=(Burner&&) = delete;

 private:
  pid_t pid_ = -1;
};

}  // namespace mbcas::test
