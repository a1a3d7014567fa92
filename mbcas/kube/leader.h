// One of several processes leads, by holding a Lease.
//
// What the record says about time is never compared with a local clock: a candidate takes the lease
// over when it has watched the record stand still for the lease's duration on its own monotonic
// clock, and a leader steps down when it could not renew for the renew deadline on its own. So
// clocks may differ or jump; only their rates must agree. leads() asks the clock, so a process that
// was stopped (SIGSTOP) beyond the lease and goes on is told the truth at once.
//
// leads() is the fence of what a leader writes: as ClientOptions::may_write it is asked before
// every try of every write. A request whose bytes the process has already handed to the kernel
// cannot be called back, so writes should carry a resourceVersion or UID as well.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "mbcas/base/clock.h"
#include "mbcas/base/mutex.h"
#include "mbcas/kube/api_error.h"
#include "mbcas/kube/types.h"

namespace mbcas::kube {

class Client;
class Metrics;

struct LeaderOptions {
  std::string name_space;
  std::string name;
  std::string identity;  // unique per process: host name and a random part
  // lease > renew_deadline > 1.2 * retry
  Nanos lease = std::chrono::seconds(15);
  Nanos renew_deadline = std::chrono::seconds(10);
  Nanos retry = std::chrono::seconds(2);
  Metrics* metrics = nullptr;
};

// What a Lease says; what is written and what is compared.
struct LeaseRecord {
  std::string holder;  // empty: released
  std::int32_t duration_seconds = 0;
  std::int32_t transitions = 0;
  WallTime acquired{};
  WallTime renewed{};
  std::string resource_version;  // "" when it does not exist yet
};

// Where the record is kept; LeaseClient is the real one.
class LeaseStorage {
 public:
  virtual ~LeaseStorage() = default;
  virtual ApiResult<LeaseRecord> read() = 0;  // 404 if there is none
  virtual ApiResult<LeaseRecord> create(const LeaseRecord& record) = 0;
  virtual ApiResult<LeaseRecord> update(const LeaseRecord& record) = 0;  // 409 if it has changed
};

std::unique_ptr<LeaseStorage> makeLeaseStorage(Client& client, std::string name_space,
                                               std::string name, Nanos timeout);

// The rules, one try at a time, without threads.
class LeaderRules {
 public:
  LeaderRules(LeaseStorage& storage, const Clock& clock, LeaderOptions options);
  static Result<void> check(const LeaderOptions& options);

  // Tries once to get or keep the lease. Returns how long to wait before the next try; `chance` in
  // [0, 1) spreads candidates out.
  Nanos attempt(double chance);
  // Whether we lead now: held, and renewed within the deadline.
  bool leads() const;
  // The deadline for renewal, while we hold the lease.
  std::optional<MonotonicTime> renewBy() const;
  const std::string& holder() const { return observed_.holder; }
  // Why the last try failed; empty if it did not, or if another leads.
  const std::string& trouble() const { return trouble_; }
  // Gives the lease back so that another need not wait. Only after all guarded work has ended.
  void release();

 private:
  bool tryOnce();
  void observe(const LeaseRecord& record);
  LeaseRecord ours() const;

  LeaseStorage& storage_;
  const Clock& clock_;
  LeaderOptions options_;
  LeaseRecord observed_;
  MonotonicTime observed_at_{};
  MonotonicTime renewed_at_{};  // when the last successful try began
  bool held_ = false;
  std::string trouble_;
};

// They run on the thread that renews the lease: none may wait for anything.
struct LeaderCallbacks {
  std::function<void()> on_started;
  // We led and do no longer: stop guarded work at once; the usual thing is to end the process.
  std::function<void()> on_lost;
  std::function<void(const std::string& identity)> on_new_leader;  // empty: no one leads
  // The lease could not be read or written, and why; reported when the reason changes.
  std::function<void(const std::string& why)> on_trouble{};
};

// Runs the rules on a thread of its own. Callbacks run on that thread.
class LeaderElector {
 public:
  LeaderElector(Client& client, LeaderOptions options, LeaderCallbacks callbacks);
  ~LeaderElector();  // stops without releasing, unless stop() was called

  Result<void> start();
  // Ends the election and, if we lead, releases the lease: call it after guarded work has ended.
  // on_lost is not called.
  void stop();
  // By the local clock, too: false as soon as the lease could not be renewed in time, whether or
  // not the election's thread has noticed.
  bool leads() const;
  // How long ago the last try to get or keep the lease ended; zero before the first.
  Nanos sinceLastTry() const;

 private:
  void run(const std::stop_token& stop);
  void setLeads(std::optional<MonotonicTime> until);

  Client& client_;
  LeaderOptions options_;
  LeaderCallbacks callbacks_;
  std::unique_ptr<LeaseStorage> storage_;
  LeaderRules rules_;  // the thread's
  mutable Mutex mutex_;
  std::condition_variable_any woken_;
  std::optional<MonotonicTime> leads_until_ MBCAS_GUARDED_BY(mutex_);
  std::optional<MonotonicTime> last_try_ MBCAS_GUARDED_BY(mutex_);
  bool release_ MBCAS_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace mbcas::kube
