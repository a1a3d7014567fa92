// What a watch cache does next: the states of list-and-watch and the one function that moves
// between them. Pure: it sees inputs, time and chance, and says what to do; see informer.h for who
// does it.
//
//                +--------------- expired ---------------+
//                v                                       |
//   kListing / kStreamingList --complete--> kWatching ---+--closed--> kWatching (resume)
//        |  ^                                 |  ^
//      failed |                             failed |
//        v  |                                 v  |
//   kWaitingToList                       kWaitingToWatch
//
// Malformed as the first thing of a watch counts as expired: the same would come again.
//
// The numbers are client-go's: 800 ms doubling to 30 s, up to twice that by jitter, forgotten after
// two quiet minutes.
#pragma once

#include <string>
#include <variant>

#include "mbcas/base/clock.h"
#include "mbcas/kube/api_error.h"

namespace mbcas::kube {

enum class WatchPhase {
  kStopped,
  kListing,        // pages of a list
  kStreamingList,  // the list as the beginning of a watch (WatchList)
  kWatching,
  kWaitingToList,
  kWaitingToWatch,
};

struct WatchTuning {
  Nanos first_delay = std::chrono::milliseconds(800);
  Nanos max_delay = std::chrono::seconds(30);
  Nanos quiet = std::chrono::minutes(2);
  // A watch that closes sooner than this without an event is a failure.
  Nanos shortest_watch = std::chrono::seconds(1);
  bool streaming_list = true;  // try WatchList; a server without it makes us list
};

namespace watch_input {
struct Start {};
struct Stop {};
struct WaitOver {};
struct PageEnded {  // of a list
  std::string resource_version;
  std::string next;
};
struct Progress {  // an event or a bookmark
  std::string resource_version;
  bool initial_events_end = false;
};
struct Closed {};  // the stream ended as streams do
struct Failed {    // the request, or an ERROR event in the stream
  ApiError error;
};
}  // namespace watch_input
using WatchInput = std::variant<watch_input::Start, watch_input::Stop, watch_input::WaitOver,
                                watch_input::PageEnded, watch_input::Progress, watch_input::Closed,
                                watch_input::Failed>;

struct WatchStep {
  enum class Do {
    kGoOn,        // with what is under way
    kStop,        // nothing more
    kList,        // from the first page: forget what was collected
    kListNext,    // the page that `next` names
    kStreamList,  // forget what was collected
    kWatch,
    kWait,
  };
  Do action = Do::kGoOn;
  std::string resource_version;  // kList, kStreamList, kWatch
  std::string next;              // kListNext
  Nanos delay{0};                // kWait
  bool complete = false;         // first of all: what was collected is the whole set, swap it in
};

class WatchMachine {
 public:
  explicit WatchMachine(WatchTuning tuning) : tuning_(tuning) {}

  // `chance` is uniform in [0, 1).
  WatchStep on(const WatchInput& input, MonotonicTime now, double chance);

  // Whether this 4xx says only that the server does not stream lists (or that we may not: the plain
  // list that follows will tell).
  bool refusesStreaming(const ApiError& error) const;

  WatchPhase phase() const { return phase_; }
  const std::string& resourceVersion() const { return version_; }

 private:
  WatchStep list();
  WatchStep watch(MonotonicTime now);
  WatchStep wait(WatchPhase phase, MonotonicTime now, double chance);
  WatchStep failed(const ApiError& error, MonotonicTime now, double chance);

  WatchTuning tuning_;
  WatchPhase phase_ = WatchPhase::kStopped;
  std::string version_;       // of the last thing seen; where a watch resumes
  std::string list_version_;  // the next list must not be older; "0": any, "": the newest
  bool listed_before_ = false;
  bool paging_ = false;             // beyond the first page
  bool streaming_refused_ = false;  // the server does not know it
  bool plain_list_next_ = false;    // streaming failed: list once
  MonotonicTime watch_began_{};
  bool saw_event_ = false;
  int failures_ = 0;
  bool answered_ = true;  // by the server, the last time that something failed
  MonotonicTime last_failure_{};
};

}  // namespace mbcas::kube
