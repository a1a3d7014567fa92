// One of several controllers, of which one works at a time: watches the cluster, stands for
// election once it has seen all of it, and works while it leads.
//
//   Replica replica(client, {.engine = ..., .election = ..., .on_lost = [] { ::_exit(1); }});
//   replica.start();
//   Result<void> ended = replica.run(stop);   // until `stop` is requested
//
// What a replica writes it writes as the leader: before every try of every write the lease is
// compared with the local clock, so that a process that was stopped beyond its lease and goes on
// writes nothing more.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "mbcas/base/mutex.h"
#include "mbcas/base/result.h"
#include "mbcas/controller/engine.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/leader.h"

namespace mbcas::controller {

struct ReplicaOptions {
  EngineOptions engine;
  std::optional<kube::LeaderOptions> election;  // nothing: works at once, whoever else does
  kube::ClientOptions client;                   // of what it writes
  // The lease is lost; nothing more can be written. To end the process, as work that is in hand
  // does not know.
  std::function<void()> on_lost;
};

class Replica {
 public:
  // `client`, whose server and account it uses, must outlive it; the lease is renewed by it.
  Replica(kube::Client& client, ReplicaOptions options);
  ~Replica();

  void start();  // watches; does not wait
  // Returns when it has stopped, with the lease released. An error: it cannot lead at all.
  Result<void> run(const std::stop_token& stop);

  bool leads() const;
  // For probes, with what is wrong. Live: everything that should make progress does. Ready: it has
  // seen the cluster, and what it sees is not out of date.
  Result<void> live() const;
  Result<void> ready() const;

 private:
  void log(const std::string& line) const;
  void logError(const std::string& line) const;
  void newLeader(const std::string& leader) const;
  void lead();
  bool waitForSync(const std::stop_token& stop);

  const ReplicaOptions options_;
  std::unique_ptr<kube::LeaderElector> elector_;  // null: no election
  std::unique_ptr<kube::Client> writer_;          // may write only while this replica leads
  std::unique_ptr<Engine> engine_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Error> failed_ MBCAS_GUARDED_BY(mutex_);
};

}  // namespace mbcas::controller
