// A namespace's quota on CPU limits, as a market among its pods on all nodes. The capacity is the
// quota less headroom for rollouts. Each pod asks for the limit that its agent wants, and gets a
// share that becomes part of its ceiling. The shares together fit the quota, so the API server has
// nothing to refuse.
//
// No pod drops below the smaller of its declared and its wanted limit: headroom and shares only
// hold raises back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mbcas/base/units.h"
#include "mbcas/kube/types.h"

namespace mbcas::policy {

// A quota on limits.cpu as it stands.
struct CpuQuota {
  std::string name;
  Millicores hard;
  Millicores used;
};
// What the quota says about `resource` (limits.cpu, requests.cpu, cpu), as admission sees it;
// nothing if it does not limit it.
std::optional<CpuQuota> cpuQuota(const kube::ResourceQuota& quota, std::string_view resource);

// Whether the quota's scopes include the pod. Scopes that the pod does not show include it.
bool covers(const kube::ResourceQuota& quota, const kube::Pod& pod);

// What a quota counts for the pod: the sum of the limits of its containers in the spec or, where
// more, in force; a plain init container counts if it alone has more.
Millicores countedLimit(const kube::Pod& pod);

struct QuotaMember {
  std::string id;
  bool managed = false;
  Millicores counted;  // by the quota, all containers
  // Of managed pods, sums over the managed containers:
  Millicores limit;  // in the spec, now
  Millicores declared;
  Millicores floor;
  Millicores guarantee;  // its request
  Millicores ceiling;    // of everything but the quota
  Millicores wanted;
  double weight = 1;
};

// The largest of a tenth of the quota and the largest declared limit of a pod.
Millicores quotaHeadroom(Millicores hard, const std::vector<QuotaMember>& members);

// Ceilings of the managed members, in order; 0 for the others. They add up to no more than the
// quota leaves, unless the requests alone exceed that.
std::vector<Millicores> quotaShares(Millicores hard, const std::vector<QuotaMember>& members);

}  // namespace mbcas::policy
