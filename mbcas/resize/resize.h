// One in-place CPU resize of one pod, done right (KEP-1287): checked, sent, and followed until the
// kubelet has actuated it, with a clear verdict.
//
//   Request request{.containers = *split(*pod, 750_m)};
//   Outcome sent = submit(client, *pod, request);             // waits for the API server only
//   if (sent.verdict == Verdict::kAccepted)
//     Outcome end = wait(client, *sent.attempt, 30s);         // waits for the kubelet
//
// A controller does not wait: it keeps the Attempt and asks judge() whenever the pod changes. Built
// of pure functions, which are below; only submit() and wait() do I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"

namespace mbcas::resize {

// The CPU of one container, main or sidecar; what is absent stays as it is.
struct ContainerCpu {
  std::string name;
  std::optional<Millicores> request;
  std::optional<Millicores> limit;
  friend bool operator==(const ContainerCpu&, const ContainerCpu&) = default;
};

struct Request {
  std::vector<ContainerCpu> containers;
  // A limit that is added can never be removed again, so it has to be asked for.
  bool may_add_limit = false;
  // Containers whose resizePolicy for cpu is RestartContainer would be restarted.
  bool may_restart = false;
};

enum class Verdict : std::uint8_t {
  kAccepted,     // so far: the API server took it, the kubelet has not finished
  kDone,         // actuated
  kDeferred,     // so far: it does not fit on the node now, the kubelet tries again
  kInfeasible,   // can never fit on its node
  kRejected,     // refused, see Refusal; nothing has changed
  kSuperseded,   // another writer has changed the same values since
  kGone,         // the pod is deleted, finished or replaced by another of its name
  kTimedOut,     // the kubelet has not finished in time
  kUnreachable,  // no answer from the API server, or a request to come later; nothing is known
};
std::string_view name(Verdict verdict);  // "Done", "TimedOut", ...
// Nothing will change it but a new request. Accepted, Deferred, TimedOut and Unreachable are not.
bool isFinal(Verdict verdict);

enum class Refusal : std::uint8_t {
  kNone,
  kEmptyRequest,
  kNoSuchContainer,
  kInitContainer,  // a plain init container
  kNoLimit,        // it has none, and may_add_limit is off
  kNotPositive,    // a limit of zero or less, or a negative request
  kRequestAboveLimit,
  kQosWouldChange,
  kBestEffort,
  kRestartsContainer,  // and may_restart is off
  kStaticPod,
  kWindows,
  kPodLevelResources,
  kNodeWithoutSupport,
  kNodeTooSmall,         // 1.36 refuses what older versions accept and call infeasible later
  kQuota,                // 403 of ResourceQuota
  kLimitRange,           // 403 of LimitRanger
  kForbidden,            // RBAC
  kPolicy,               // another admission plugin, policy or webhook
  kServerWithoutResize,  // the API server does not serve pods/resize
  kInvalid,              // any other validation error
};
std::string_view name(Refusal refusal);  // "Quota", ...

// What must be remembered to know later how a resize went.
struct Attempt {
  std::string name_space;
  std::string pod;
  std::string uid;
  std::int64_t generation = 0;   // of the pod, after the patch
  std::string resource_version;  // likewise
  bool changed = true;           // false: the spec was as wanted before
  std::vector<ContainerCpu> containers;
};

struct Outcome {
  Verdict verdict = Verdict::kUnreachable;
  Refusal refusal = Refusal::kNone;
  std::string message;               // one line for a person; may be empty when done
  std::optional<Attempt> attempt;    // of what the API server accepted
  std::optional<Nanos> retry_after;  // kUnreachable: the server's hint
};

// ---- Pure -------------------------------------------------------------------------------------

inline constexpr Millicores kStep{10};  // the kernel's granularity of a limit: 1 ms of 100 ms
// To the next step, at least one.
Millicores roundUpToStep(Millicores cpu);

enum class Policy : std::uint8_t { kLimits, kRequests, kBoth };

// Divides `total` over containers in proportion to what each has today, in whole steps: those
// named, or all that have such a value today, plain init containers aside. No limit is below its
// request: the sum is the total, rounded up to a step, or what the requests need if that is more.
// With kBoth each gets request = limit. An error if there is no such container.
Result<std::vector<ContainerCpu>> split(const kube::Pod& pod, Millicores total,
                                        Policy policy = Policy::kLimits,
                                        const std::vector<std::string>& only = {});

// Why the API server would refuse, as far as the pod alone shows. A dry run on the client's side.
struct Rejection {
  Refusal refusal = Refusal::kNone;
  std::string message;
};
std::optional<Rejection> check(const kube::Pod& pod, const Request& request);

// The spec already says so: nothing to send.
bool isNoOp(const kube::Pod& pod, const Request& request);

// Strategic merge patch for pods/resize, good for this version of the pod only: the API server
// refuses it (409) once anything of the pod has changed.
std::string patchBody(const kube::Pod& pod, const Request& request);

// What an error answer to such a patch means. kGone is left to who can look: a 404, and a 409 or
// 422 about the UID, are kGone; a plain conflict is kUnreachable, to be tried again.
Outcome interpret(const kube::ApiError& error);

// How the resize stands, from any version of the pod; a version older than the attempt tells
// nothing. kAccepted, kDone, kDeferred, kInfeasible, kSuperseded or kGone.
//
// Done: the kubelet has observed the generation, no resize condition is present and the status has
// the wanted values. Without observedGeneration (Kubernetes 1.33): the last two, in a version newer
// than the patch's.
Outcome judge(const kube::Pod& pod, const Attempt& attempt);

// The attempt of the process that wrote the present spec: to take up the work of a predecessor.
// Only if the spec is as the request says (isNoOp).
Attempt adopt(const kube::Pod& pod, const Request& request);

// ---- I/O: blocking, not on the client's loop ---------------------------------------------------

struct SubmitOptions {
  std::string field_manager = "mbcas-resize";
  bool dry_run = false;    // on the server: everything but the change; the verdict is kAccepted
  int conflict_tries = 5;  // re-reads the pod in between
  // Sends nothing once the spec differs from the version that was passed (kSuperseded): for a
  // decision that was made on it.
  bool only_if_unchanged = false;
};
// `pod` may be stale: its UID names the incarnation, and after a conflict it is read again. So no
// change of another writer is overwritten unseen.
Outcome submit(kube::Client& client, const kube::Pod& pod, const Request& request,
               const SubmitOptions& options = {});

// Watches the pod until the verdict is final, or the time is over: then kDeferred if that is how it
// stands, else kTimedOut.
Outcome wait(kube::Client& client, const Attempt& attempt, Nanos timeout);

}  // namespace mbcas::resize
