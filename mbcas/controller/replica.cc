#include "mbcas/controller/replica.h"

#include <fmt/format.h>

#include <thread>

namespace mbcas::controller {
namespace {

constexpr Nanos kSyncCheck = std::chrono::milliseconds(50);
constexpr Nanos kSyncReminder = std::chrono::seconds(30);
constexpr Nanos kPatience = std::chrono::seconds(5);  // with what is in hand when it stops
// Tries for the lease, each of which has a time-out, that take longer than this many leases are
// stuck.
constexpr int kStuckLeases = 20;

}  // namespace

Replica::Replica(kube::Client& client, ReplicaOptions options) : options_(std::move(options)) {
  kube::ClientOptions of_writer = options_.client;
  if (options_.election) {
    elector_ = std::make_unique<kube::LeaderElector>(
        client, *options_.election,
        kube::LeaderCallbacks{
            .on_started = [this] { lead(); },
            .on_lost = options_.on_lost,
            .on_new_leader = [this](const std::string& leader) { newLeader(leader); },
            .on_trouble = [this](const std::string& why) { logError("leader election: " + why); }});
    of_writer.may_write = [this] { return elector_->leads(); };
  }
  writer_ = std::make_unique<kube::Client>(client.loop(), client.config(), client.clock(),
                                           std::move(of_writer));
  engine_ = std::make_unique<Engine>(*writer_, options_.engine);
}

Replica::~Replica() = default;

void Replica::start() {
  engine_->start();
}

Result<void> Replica::run(const std::stop_token& stop) {
  // A candidate that has not seen the cluster could do nothing with the lease but keep it from
  // others; one that has takes over at once.
  if (waitForSync(stop)) {
    if (!elector_) {
      lead();
    } else if (Result<void> started = elector_->start(); !started) {
      return started;
    }
    MutexLock lock(mutex_);
    changed_.wait(lock.native(), stop,
                  [this] MBCAS_REQUIRES(mutex_) { return failed_.has_value(); });
  }
  {
    // Requests that hang must not keep the lease from the next leader.
    const std::jthread impatience([this](const std::stop_token& done) {
      MutexLock lock(mutex_);
      changed_.wait_for(lock.native(), done, kPatience, [] { return false; });
      if (!done.stop_requested()) writer_->close();
    });
    engine_->stop();
  }
  if (elector_) elector_->stop();
  const MutexLock lock(mutex_);
  if (failed_) return failure(*failed_);
  return {};
}

bool Replica::waitForSync(const std::stop_token& stop) {
  const Clock& clock = writer_->clock();
  MonotonicTime remind = clock.monotonic() + kSyncReminder;
  while (!engine_->waitForSync(kSyncCheck)) {
    if (stop.stop_requested()) return false;
    if (clock.monotonic() < remind) continue;
    remind += kSyncReminder;
    log("still waiting for the first lists of the cluster's objects");
  }
  return !stop.stop_requested();
}

// On the election's thread: does not wait.
void Replica::lead() {
  Result<void> begun = engine_->lead();
  if (begun) return log(options_.engine.dry_run ? "leads, and only recommends" : "leads");
  {
    const MutexLock lock(mutex_);
    failed_ = std::move(begun).error();
  }
  changed_.notify_all();
}

void Replica::newLeader(const std::string& leader) const {
  if (leader == options_.election->identity) return;
  log(leader.empty() ? "stands by; no replica leads at present"
                     : "stands by; the leader is " + leader);
}

bool Replica::leads() const {
  return !elector_ || elector_->leads();
}

Result<void> Replica::live() const {
  if (elector_ && elector_->sinceLastTry() >= options_.election->lease * kStuckLeases) {
    return failure("an attempt to acquire or renew the lease does not end");
  }
  return engine_->live();
}

Result<void> Replica::ready() const {
  return engine_->ready();
}

void Replica::log(const std::string& line) const {
  if (options_.engine.log) options_.engine.log(line);
}

void Replica::logError(const std::string& line) const {
  if (options_.engine.log_error) return options_.engine.log_error(line);
  log(line);
}

}  // namespace mbcas::controller
