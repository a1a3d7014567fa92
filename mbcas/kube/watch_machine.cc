#include "mbcas/kube/watch_machine.h"

#include <algorithm>

namespace mbcas::kube {

using Do = WatchStep::Do;

WatchStep WatchMachine::list() {
  paging_ = false;
  if (tuning_.streaming_list && !streaming_refused_ && !plain_list_next_) {
    phase_ = WatchPhase::kStreamingList;
    return {.action = Do::kStreamList, .resource_version = list_version_};
  }
  plain_list_next_ = false;
  phase_ = WatchPhase::kListing;
  // The first list of all may be as old as the server's cache likes: the watch brings the rest.
  return {.action = Do::kList, .resource_version = listed_before_ ? list_version_ : "0"};
}

WatchStep WatchMachine::watch(MonotonicTime now) {
  phase_ = WatchPhase::kWatching;
  watch_began_ = now;
  saw_event_ = false;
  return {.action = Do::kWatch, .resource_version = version_};
}

WatchStep WatchMachine::wait(WatchPhase phase, MonotonicTime now, double chance) {
  phase_ = phase;
  if (now - last_failure_ > tuning_.quiet) failures_ = 0;
  last_failure_ = now;
  double delay = static_cast<double>(tuning_.first_delay.count());
  for (int i = 0; i < failures_ && delay < static_cast<double>(tuning_.max_delay.count()); ++i) {
    delay *= 2;
  }
  ++failures_;
  delay = std::min(delay, static_cast<double>(tuning_.max_delay.count()));
  return {.action = Do::kWait, .delay = Nanos(static_cast<std::int64_t>(delay * (1 + chance)))};
}

bool WatchMachine::refusesStreaming(const ApiError& error) const {
  return phase_ == WatchPhase::kStreamingList && error.answered() && !error.transient() &&
         !error.expired();
}

WatchStep WatchMachine::failed(const ApiError& error, MonotonicTime now, double chance) {
  // A server that answers is back, if only to say that it has forgotten what we know: how long it
  // was away is no reason to wait any more.
  if (error.answered() && !answered_) failures_ = 0;
  answered_ = error.answered();
  switch (phase_) {
    case WatchPhase::kStreamingList:
      plain_list_next_ = true;
      if (refusesStreaming(error)) {
        streaming_refused_ = true;
        return list();
      }
      if (error.expired() || error.tooLargeVersion()) list_version_.clear();
      return wait(WatchPhase::kWaitingToList, now, chance);
    case WatchPhase::kListing:
      if (error.expired() || error.tooLargeVersion()) {
        // A page's token, or the version we hold, is too old, or the server has lost history.
        const bool from_newest = listed_before_ && list_version_.empty() && !paging_;
        list_version_.clear();
        listed_before_ = true;
        plain_list_next_ = true;
        if (!from_newest) return list();
      }
      plain_list_next_ = true;
      return wait(WatchPhase::kWaitingToList, now, chance);
    case WatchPhase::kWatching:
      if (error.expired() || error.tooLargeVersion()) {
        list_version_ = error.expired() ? version_ : "";
        return wait(WatchPhase::kWaitingToList, now, chance);
      }
      // The next event of this history cannot be read, now or ever: a list goes round it.
      if (error.reason == ApiError::kMalformed && !saw_event_) {
        list_version_ = version_;
        return wait(WatchPhase::kWaitingToList, now, chance);
      }
      return wait(WatchPhase::kWaitingToWatch, now, chance);
    default:
      return {};
  }
}

WatchStep WatchMachine::on(const WatchInput& input, MonotonicTime now, double chance) {
  using namespace watch_input;
  if (std::holds_alternative<Stop>(input)) {
    phase_ = WatchPhase::kStopped;
    return {.action = Do::kStop};
  }
  if (std::holds_alternative<Start>(input)) {
    if (phase_ != WatchPhase::kStopped) return {};
    return list();
  }
  if (std::holds_alternative<WaitOver>(input)) {
    if (phase_ == WatchPhase::kWaitingToList) return list();
    if (phase_ == WatchPhase::kWaitingToWatch) return watch(now);
    return {};
  }
  if (const auto* page = std::get_if<PageEnded>(&input)) {
    if (phase_ != WatchPhase::kListing) return {};
    if (!page->next.empty()) {
      paging_ = true;
      return {.action = Do::kListNext, .next = page->next};
    }
    version_ = page->resource_version;
    listed_before_ = true;
    WatchStep step = watch(now);
    step.complete = true;
    return step;
  }
  if (const auto* progress = std::get_if<Progress>(&input)) {
    if (phase_ == WatchPhase::kStreamingList && progress->initial_events_end) {
      version_ = progress->resource_version;
      listed_before_ = true;
      watch(now);  // the same stream goes on as the watch
      saw_event_ = true;
      return {.action = Do::kGoOn, .complete = true};
    }
    if (phase_ == WatchPhase::kWatching) {
      version_ = progress->resource_version;
      saw_event_ = true;
    }
    return {};
  }
  if (const auto* failure = std::get_if<Failed>(&input)) return failed(failure->error, now, chance);

  // Closed
  if (phase_ == WatchPhase::kWatching) {
    if (!saw_event_ && now - watch_began_ < tuning_.shortest_watch) {
      return wait(WatchPhase::kWaitingToWatch, now, chance);
    }
    return watch(now);
  }
  ApiError early;
  early.reason = ApiError::kBroken;
  return failed(early, now, chance);
}

}  // namespace mbcas::kube
