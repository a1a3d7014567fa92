// What the API server's refusals mean. They carry no code of their own, only HTTP status and text,
// so this goes by the texts of Kubernetes 1.33 to 1.36; each is provoked in test/integration.
#include <array>
#include <string_view>

#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

struct Phrase {
  std::string_view text;
  Refusal refusal;
};

// By admission, whatever the status code: a policy answers 422, a plugin 403, a webhook as it
// likes.
constexpr auto kAdmission = std::to_array<Phrase>({
    {"exceeded quota:", Refusal::kQuota},
    {"failed quota:", Refusal::kQuota},
    {"insufficient quota", Refusal::kQuota},
    {"cpu usage per ", Refusal::kLimitRange},
    {"cpu max limit to request ratio per ", Refusal::kLimitRange},
    {"memory usage per ", Refusal::kLimitRange},
    {"memory max limit to request ratio per ", Refusal::kLimitRange},
    {"node didn't have enough allocatable resources", Refusal::kNodeTooSmall},
    {"ValidatingAdmissionPolicy ", Refusal::kPolicy},
    {"admission webhook ", Refusal::kPolicy},
});

constexpr auto kValidation = std::to_array<Phrase>({
    {"Pod QOS Class may not change", Refusal::kQosWouldChange},
    {"must be greater than or equal to 0", Refusal::kNotPositive},
    {"must be less than or equal to cpu limit", Refusal::kRequestAboveLimit},
    {"resources for non-sidecar init containers are immutable", Refusal::kInitContainer},
    {"containers may not be ", Refusal::kNoSuchContainer},
    {"static pods cannot be resized", Refusal::kStaticPod},
    {"windows pods cannot be resized", Refusal::kWindows},
    {"pod-level resources", Refusal::kPodLevelResources},
    {"without support for resize", Refusal::kNodeWithoutSupport},
});

template <std::size_t n>
Refusal match(const std::array<Phrase, n>& phrases, std::string_view message) {
  for (const Phrase& phrase : phrases) {
    if (message.contains(phrase.text)) return phrase.refusal;
  }
  return Refusal::kNone;
}

// A pod of another UID has the name now.
bool isUidMismatch(const kube::ApiError& error) {
  return (error.code == 409 && error.message.contains("UID")) ||
         (error.code == 422 && error.message.contains("metadata.uid"));
}

Refusal refusalOf(const kube::ApiError& error) {
  if (const Refusal found = match(kAdmission, error.message); found != Refusal::kNone) {
    return found;
  }
  switch (error.code) {
    case 404:
      return Refusal::kServerWithoutResize;
    case 401:
      return Refusal::kForbidden;
    case 403:
      return error.message.contains(" cannot ") ? Refusal::kForbidden : Refusal::kPolicy;
    case 422: {
      const Refusal found = match(kValidation, error.message);
      return found == Refusal::kNone ? Refusal::kInvalid : found;
    }
    default:
      return Refusal::kInvalid;
  }
}

}  // namespace

Outcome interpret(const kube::ApiError& error) {
  Outcome outcome{.message = error.describe(), .retry_after = error.retry_after};
  // A server that lacks the subresource says "the server could not find the requested resource".
  const bool object_missing = error.code == 404 && error.message.ends_with(" not found");
  if (object_missing || isUidMismatch(error)) {
    outcome.verdict = Verdict::kGone;
  } else if (error.transient() || error.conflict()) {
    outcome.verdict = Verdict::kUnreachable;
  } else {
    outcome.verdict = Verdict::kRejected;
    outcome.refusal = refusalOf(error);
  }
  return outcome;
}

}  // namespace mbcas::resize
