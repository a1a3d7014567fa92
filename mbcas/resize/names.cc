#include "mbcas/resize/resize.h"

namespace mbcas::resize {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAccepted:
      return "Accepted";
    case Verdict::kDone:
      return "Done";
    case Verdict::kDeferred:
      return "Deferred";
    case Verdict::kInfeasible:
      return "Infeasible";
    case Verdict::kRejected:
      return "Rejected";
    case Verdict::kSuperseded:
      return "Superseded";
    case Verdict::kGone:
      return "Gone";
    case Verdict::kTimedOut:
      return "TimedOut";
    case Verdict::kUnreachable:
      return "Unreachable";
  }
  return "";
}

bool isFinal(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDone:
    case Verdict::kInfeasible:
    case Verdict::kRejected:
    case Verdict::kSuperseded:
    case Verdict::kGone:
      return true;
    case Verdict::kAccepted:
    case Verdict::kDeferred:
    case Verdict::kTimedOut:
    case Verdict::kUnreachable:
      break;
  }
  return false;
}

std::string_view name(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "";
    case Refusal::kEmptyRequest:
      return "EmptyRequest";
    case Refusal::kNoSuchContainer:
      return "NoSuchContainer";
    case Refusal::kInitContainer:
      return "InitContainer";
    case Refusal::kNoLimit:
      return "NoLimit";
    case Refusal::kNotPositive:
      return "NotPositive";
    case Refusal::kRequestAboveLimit:
      return "RequestAboveLimit";
    case Refusal::kQosWouldChange:
      return "QosWouldChange";
    case Refusal::kBestEffort:
      return "BestEffort";
    case Refusal::kRestartsContainer:
      return "RestartsContainer";
    case Refusal::kStaticPod:
      return "StaticPod";
    case Refusal::kWindows:
      return "Windows";
    case Refusal::kPodLevelResources:
      return "PodLevelResources";
    case Refusal::kNodeWithoutSupport:
      return "NodeWithoutSupport";
    case Refusal::kNodeTooSmall:
      return "NodeTooSmall";
    case Refusal::kQuota:
      return "Quota";
    case Refusal::kLimitRange:
      return "LimitRange";
    case Refusal::kForbidden:
      return "Forbidden";
    case Refusal::kPolicy:
      return "Policy";
    case Refusal::kServerWithoutResize:
      return "ServerWithoutResize";
    case Refusal::kInvalid:
      return "Invalid";
  }
  return "";
}

}  // namespace mbcas::resize
