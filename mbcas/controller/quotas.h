// The quotas of all namespaces: each pod's share, cleared at most once a second per namespace, and
// the room that is left at the moment of a raise.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/base/mutex.h"
#include "mbcas/controller/cluster.h"
#include "mbcas/policy/bounds.h"

namespace mbcas::controller {

struct QuotaShare {
  Millicores share;   // ceiling of the managed containers
  std::string quota;  // which of the quotas is the narrowest
};

// Thread-safe.
class Quotas {
 public:
  struct Answer {
    std::optional<QuotaShare> share;   // nothing: no quota concerns the pod
    std::vector<std::string> touched;  // keys of pods whose share has changed with this clearing
    std::optional<Nanos> again;        // the share is of an older clearing: ask again then
  };
  Answer shareOf(const Cluster& cluster, const kube::Pod& pod,
                 const policy::NamespaceObjects& objects, const policy::Settings& settings,
                 MonotonicTime now);

 private:
  struct Market {
    MonotonicTime at{};
    std::map<std::string, QuotaShare, std::less<>> shares;  // by name of pod
  };
  Mutex mutex_;
  std::map<std::string, Market, std::less<>> markets_ MBCAS_GUARDED_BY(mutex_);
};

// Whether any quota limits the CPU limits (or, of a Guaranteed pod, the requests) of the pod.
bool limitedByQuota(const kube::Pod& pod, const policy::NamespaceObjects& objects,
                    bool requests_follow);
// What the quotas, as the server has them now, leave for a raise. Nothing: no quota.
kube::ApiResult<std::optional<Millicores>> roomNow(kube::Client& client, const kube::Pod& pod,
                                                   bool requests_follow);

}  // namespace mbcas::controller
