#include "mbcas/resize/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "mbcas/kube/informer.h"

namespace mbcas::resize {
namespace {

using kube::ApiError;
using kube::ApiResult;
using kube::Pod;
using PodPtr = std::shared_ptr<const Pod>;

Outcome gone(std::string_view why) {
  return {.verdict = Verdict::kGone, .message = std::string(why)};
}

Attempt attemptOf(const Pod& before, const Pod& after, const Request& request) {
  Attempt attempt = adopt(after, request);
  attempt.changed = after.meta.generation != before.meta.generation || !isNoOp(before, request);
  return attempt;
}

}  // namespace

Outcome submit(kube::Client& client, const Pod& pod, const Request& request,
               const SubmitOptions& options) {
  const std::string uid = pod.meta.uid.string();
  const kube::WriteOptions write{.subresource = "resize",
                                 .field_manager = options.field_manager,
                                 .force = false,
                                 .dry_run = options.dry_run};
  PodPtr reread;
  Outcome outcome;
  for (int tries = 0; tries < options.conflict_tries; ++tries) {
    const Pod& current = reread ? *reread : pod;
    if (current.meta.uid != uid) return gone("another pod has this name now");
    if (current.meta.beingDeleted()) return gone("the pod is being deleted");
    if (current.terminal()) return gone("the pod has finished");
    if (options.only_if_unchanged && current.meta.generation != pod.meta.generation) {
      return {.verdict = Verdict::kSuperseded,
              .message = "another writer has changed the pod meanwhile"};
    }
    if (std::optional<Rejection> rejection = check(current, request)) {
      return {.verdict = Verdict::kRejected,
              .refusal = rejection->refusal,
              .message = std::move(rejection->message)};
    }
    const ApiResult<PodPtr> patched =
        client.patch<Pod>(current.meta.namespace_, current.meta.name, kube::PatchType::kStrategic,
                          patchBody(current, request), write);
    if (patched) {
      return {.verdict = Verdict::kAccepted, .attempt = attemptOf(current, **patched, request)};
    }
    outcome = interpret(patched.error());
    if (!patched.error().conflict()) return outcome;
    ApiResult<PodPtr> read = client.get<Pod>(pod.meta.namespace_, pod.meta.name);
    if (!read) return interpret(read.error());
    reread = *std::move(read);
  }
  return outcome;
}

Outcome wait(kube::Client& client, const Attempt& attempt, Nanos timeout) {
  std::mutex mutex;
  std::condition_variable changed;
  Outcome latest{.verdict = Verdict::kAccepted, .attempt = attempt};
  std::string trouble;
  bool over = false;

  const auto end = [&](Outcome outcome) {
    const std::lock_guard lock(mutex);
    if (over) return;
    latest = std::move(outcome);
    latest.attempt = attempt;
    over = isFinal(latest.verdict) || latest.verdict == Verdict::kUnreachable;
    if (over) changed.notify_one();
  };
  kube::WatchOptions options{.name_space = attempt.name_space,
                             .field_selector = "metadata.name=" + attempt.pod,
                             .annotations = std::vector<std::string>{}};
  // Kubernetes 1.35 takes 10 s to end a streaming list of one name; it is one object anyway.
  options.tuning.streaming_list = false;
  options.on_error = [&](const ApiError& error) {
    if (error.code == 401 || error.code == 403) {
      return end({.verdict = Verdict::kUnreachable,
                  .message = "accepted, but cannot be followed: " + error.describe()});
    }
    const std::lock_guard lock(mutex);
    trouble = error.describe();
  };
  kube::Informer<Pod> pods(client, options);
  pods.onChange([&](const kube::TypedChange<Pod>& change) {
    end(change.after ? judge(*change.after, attempt) : gone("the pod was deleted"));
  });
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  pods.start();
  // A pod that was deleted before the watch began is in no event: the store has to be asked.
  constexpr std::chrono::milliseconds kGlance(100);
  std::unique_lock lock(mutex);
  while (!over && std::chrono::steady_clock::now() < deadline) {
    changed.wait_until(lock, std::min(deadline, std::chrono::steady_clock::now() + kGlance));
    if (over || !pods.hasSynced() || pods.find(attempt.name_space, attempt.pod)) continue;
    latest = gone("the pod was deleted");
    over = true;
  }
  lock.unlock();
  pods.stop();
  if (latest.verdict == Verdict::kAccepted) {
    latest.verdict = Verdict::kTimedOut;
    if (latest.message.empty()) latest.message = trouble;
  }
  return latest;
}

}  // namespace mbcas::resize
