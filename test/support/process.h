// A daemon under test: started as a process, its output kept, ended with the object however the
// test ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace mbcas::test {

class Process {
 public:
  // `directory` takes its output, in NAME.out and NAME.err, which are appended to.
  Process(std::vector<std::string> words, const std::string& directory, const std::string& name,
          const std::map<std::string, std::string>& environment = {});
  ~Process();  // SIGKILL
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool ended();
  void signal(int number) const;
  // Waits for its end, at most two minutes: -1 if it goes on or was killed.
  int wait();

  std::string out() const;  // all of it
  std::string err() const;
  std::vector<std::string> lines() const;  // of out(), whole ones

  struct Cost {
    std::chrono::nanoseconds cpu{0};  // of all its threads
    std::size_t rss = 0;              // bytes: everything, shared libraries too
    std::size_t anonymous = 0;        // its own data
  };
  Cost cost() const { return costOf(pid_); }
  static Cost costOf(pid_t pid);

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
  std::string out_;
  std::string err_;
};

}  // namespace mbcas::test
