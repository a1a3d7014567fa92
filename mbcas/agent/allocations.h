// What the agent knows of the PodAllocations of its pods. It watches none of them, because an API
// server has no index for "those of my node" and would compare every write of any of them with the
// watch of every agent. Each object is read by name instead:
//
//   - once at the start, of every pod that is there by then;
//   - in the answer to each of the agent's own writes;
//   - soon after it was made, until the controller has written its bounds;
//   - when the pod's CPU limits change, because the object says what it had declared before;
//   - when the controller has marked it as changed (podallocation/marks.h);
//   - and now and then, in case a mark was lost.
//
//   world.pods = allocations.follow(pods, now);
//   while (const auto read = allocations.take(now)) send(*read);   // and when it has ended:
//   allocations.found(uid, object, now), missing(uid, now) or failed(uid, retry_after, now)
//   come back at allocations.next(now)
//
// Pure: time is an argument. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/marks.h"
#include "mbcas/podallocation/pod_allocation.h"

namespace mbcas::agent {

class Allocations {
 public:
  using Object = std::shared_ptr<const podallocation::PodAllocation>;
  struct Options {
    // An object that nothing was heard of for so long is read again.
    Nanos refresh = std::chrono::minutes(15);
    int in_flight = 4;
    std::uint64_t seed = 0;  // of the jitter
  };
  explicit Allocations(const Options& options);

  using PodPtr = std::shared_ptr<const kube::Pod>;

  // The pods that are bound to the node now. Those that come after the first call are new: nobody
  // but this agent makes their objects. Returns the same pods, but a pod whose limits have changed
  // as it was before, until its object has been read again: the two would not belong together.
  std::vector<PodPtr> follow(const std::vector<PodPtr>& pods, MonotonicTime now);

  struct Read {
    std::string name_space{};
    std::string uid{};
    bool newest = false;  // from etcd; false: the server's cache will do
  };
  // What to read now; nothing: nothing is due. A read is under way until its answer is passed in.
  std::optional<Read> take(MonotonicTime now);
  void found(std::string_view uid, Object object, MonotonicTime now);
  void missing(std::string_view uid, MonotonicTime now);
  void failed(std::string_view uid, std::optional<Nanos> retry_after, MonotonicTime now);
  // The answer to the agent's own write.
  void wrote(std::string_view uid, Object object, MonotonicTime now);

  // The Lease was renewed, and this is its annotation.
  void renewed(std::string_view marks, MonotonicTime now);

  // Every pod's object has been read, or is known not to be there.
  bool complete() const;
  std::vector<Object> list() const;
  std::size_t size() const;  // of list()
  // When take() may give something.
  std::optional<MonotonicTime> next(MonotonicTime now) const;

 private:
  struct Entry {
    std::string name_space{};
    PodPtr pod{};         // as it came last
    PodPtr shown{};       // as it was returned last
    PodPtr read_with{};   // what had come when the last read was begun
    bool matches = true;  // the object has been read since `read_with` came
    Object object{};
    std::optional<MonotonicTime> due{};
    bool known = false;         // it has been read, or it does not exist
    bool newest = false;        // of the next read, see there
    bool under_way = false;     // a read is,
    bool reads_newest = false;  // of this kind,
    bool written = false;       // and meanwhile a write has ended
    int without_bounds = 0;     // looks for them
  };
  Entry* find(std::string_view uid);
  Entry* answered(std::string_view uid);
  PodPtr show(Entry& entry, const PodPtr& pod, MonotonicTime now);
  static void keep(Entry& entry, Object object);
  void plan(Entry& entry, MonotonicTime now);
  static void readAgain(Entry& entry, MonotonicTime when);
  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  const Options options_;
  std::mt19937_64 random_;
  std::map<std::string, Entry, std::less<>> entries_;  // by UID of the pod
  podallocation::MarkReader marks_;
  std::optional<MonotonicTime> renewed_{};
  std::optional<MonotonicTime> not_before_{};  // after a failure
  int failures_ = 0;
  int under_way_ = 0;
  bool started_ = false;
};

}  // namespace mbcas::agent
