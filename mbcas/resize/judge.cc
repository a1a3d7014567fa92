#include <fmt/format.h>

#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

using kube::Pod;

// A kubelet before 1.34 does not say which generation it speaks of. Then any word that is newer
// than the patch counts, and if nothing was changed there will be no newer one.
bool mayHaveSeen(const Pod& pod, const Attempt& attempt) {
  return !attempt.changed || kube::isNewer(pod.meta.resource_version, attempt.resource_version);
}

bool speaksOf(std::int64_t observed_generation, const Pod& pod, const Attempt& attempt) {
  return observed_generation > 0 ? observed_generation >= attempt.generation
                                 : mayHaveSeen(pod, attempt);
}

std::string text(std::optional<Millicores> cpu) {
  return cpu ? fmt::format("{}m", cpu->count()) : "none";
}

// What the status does not show yet; empty if it shows everything.
std::string missing(const Pod& pod, const Attempt& attempt) {
  for (const ContainerCpu& wanted : attempt.containers) {
    const kube::ContainerStatus* status = pod.status(wanted.name);
    if (status == nullptr || !status->has_resources) {
      return fmt::format("container {} has no resources in its status yet", wanted.name);
    }
    if (wanted.limit && wanted.limit != status->limits.cpu()) {
      return fmt::format("container {} still has the limit {}", wanted.name,
                         text(status->limits.cpu()));
    }
    if (wanted.request && wanted.request != status->requests.cpu()) {
      return fmt::format("container {} still has the request {}", wanted.name,
                         text(status->requests.cpu()));
    }
  }
  return {};
}

std::string describe(std::string_view what, const kube::ResizeCondition& condition) {
  return condition.message.empty() ? std::string(what)
                                   : fmt::format("{}: {}", what, condition.message.view());
}

Outcome progress(const Pod& pod, const Attempt& attempt) {
  const auto outcome = [](Verdict verdict, std::string message) {
    return Outcome{.verdict = verdict, .message = std::move(message)};
  };
  if (pod.meta.uid != attempt.uid) {
    return outcome(Verdict::kGone, "another pod has this name now");
  }
  if (pod.meta.beingDeleted()) return outcome(Verdict::kGone, "the pod is being deleted");
  if (pod.terminal()) return outcome(Verdict::kGone, "the pod has finished");
  if (pod.meta.generation < attempt.generation) {
    return outcome(Verdict::kAccepted, "an older version of the pod");
  }
  if (!isNoOp(pod, {.containers = attempt.containers})) {
    return outcome(Verdict::kSuperseded, "another writer has changed the same resources since");
  }
  if (pod.node.empty()) return outcome(Verdict::kAccepted, "the pod is not scheduled yet");

  if (const kube::ResizeCondition pending = pod.resizePending(); pending.present) {
    if (!speaksOf(pending.observed_generation, pod, attempt)) {
      return outcome(Verdict::kAccepted, "an earlier resize is pending");
    }
    return outcome(pending.reason == "Infeasible" ? Verdict::kInfeasible : Verdict::kDeferred,
                   describe(fmt::format("the kubelet says {}", pending.reason.view()), pending));
  }
  if (const kube::ResizeCondition running = pod.resizeInProgress(); running.present) {
    return outcome(Verdict::kAccepted,
                   describe(running.reason == "Error" ? "the kubelet failed and retries"
                                                      : "the kubelet is applying the resize",
                            running));
  }
  if (!speaksOf(pod.observed_generation, pod, attempt)) {
    return outcome(Verdict::kAccepted, "the kubelet has not seen the resize yet");
  }
  if (std::string what = missing(pod, attempt); !what.empty()) {
    return outcome(Verdict::kAccepted, std::move(what));
  }
  return outcome(Verdict::kDone, "");
}

}  // namespace

Outcome judge(const Pod& pod, const Attempt& attempt) {
  Outcome outcome = progress(pod, attempt);
  outcome.attempt = attempt;
  return outcome;
}

Attempt adopt(const Pod& pod, const Request& request) {
  return {.name_space = pod.meta.namespace_.string(),
          .pod = pod.meta.name.string(),
          .uid = pod.meta.uid.string(),
          .generation = pod.meta.generation,
          .resource_version = pod.meta.resource_version.string(),
          .changed = false,
          .containers = request.containers};
}

}  // namespace mbcas::resize
