#include "mbcas/controller/quotas.h"

#include <algorithm>
#include <array>

#include "mbcas/control/weight.h"
#include "mbcas/policy/quota.h"

namespace mbcas::controller {
namespace {

constexpr Nanos kClearingInterval = std::chrono::seconds(1);
constexpr std::string_view kLimits = "limits.cpu";
constexpr std::array<std::string_view, 2> kRequests = {"requests.cpu", "cpu"};

policy::QuotaMember memberOf(const Cluster& cluster, const kube::Pod& pod,
                             const policy::NamespaceObjects& objects,
                             const policy::Settings& settings) {
  policy::QuotaMember member{.id = pod.meta.name.string(), .counted = policy::countedLimit(pod)};
  const std::shared_ptr<const kube::Node> node = cluster.node(pod.node);
  const AllocationPtr allocation = cluster.allocationOf(pod);
  const policy::PodPolicy policy =
      policy::judgePod(pod, allocation.get(), objects, node.get(), settings);
  if (!policy.managed || !allocation || policy.mode == policy::Mode::kRecommend) return member;
  member.managed = true;
  member.limit = policy.limit();
  member.declared = policy.declared();
  member.floor = policy.floor;
  member.guarantee = policy.request();
  member.ceiling = policy.ceiling;
  member.wanted = allocation->wanted.value_or(std::max(allocation->desired, member.declared));
  member.weight = control::weightOf(policy.request(), pod.priority);
  return member;
}

std::map<std::string, QuotaShare, std::less<>> clear(const Cluster& cluster,
                                                     const std::string& name_space,
                                                     const policy::NamespaceObjects& objects,
                                                     const policy::Settings& settings) {
  std::map<std::string, QuotaShare, std::less<>> shares;
  const std::vector<PodPtr> pods = cluster.podsOfNamespace(name_space);
  for (const auto& object : objects.quotas) {
    const std::optional<policy::CpuQuota> quota = policy::cpuQuota(*object, kLimits);
    if (!quota) continue;
    std::vector<policy::QuotaMember> members;
    for (const PodPtr& pod : pods) {
      if (pod->terminal() || !policy::covers(*object, *pod)) continue;
      members.push_back(memberOf(cluster, *pod, objects, settings));
    }
    const std::vector<Millicores> cleared = policy::quotaShares(quota->hard, members);
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!members[i].managed) continue;
      const auto [share, is_new] =
          shares.try_emplace(members[i].id, QuotaShare{cleared[i], quota->name});
      if (!is_new && cleared[i] < share->second.share) share->second = {cleared[i], quota->name};
    }
  }
  return shares;
}

template <class Visit>
void eachQuota(const kube::ResourceQuota& quota, const kube::Pod& pod, bool requests_follow,
               const Visit& visit) {
  if (!policy::covers(quota, pod)) return;
  if (const auto limits = policy::cpuQuota(quota, kLimits)) visit(*limits);
  if (!requests_follow) return;
  for (const std::string_view resource : kRequests) {
    if (const auto requests = policy::cpuQuota(quota, resource)) visit(*requests);
  }
}

}  // namespace

Quotas::Answer Quotas::shareOf(const Cluster& cluster, const kube::Pod& pod,
                               const policy::NamespaceObjects& objects,
                               const policy::Settings& settings, MonotonicTime now) {
  Answer answer;
  const std::string name_space = pod.meta.namespace_.string();
  if (!limitedByQuota(pod, objects, false)) {
    const MutexLock lock(mutex_);
    markets_.erase(name_space);
    return answer;
  }
  bool due = false;
  {
    const MutexLock lock(mutex_);
    const auto [market, is_new] = markets_.try_emplace(name_space);
    due = is_new || now - market->second.at >= kClearingInterval;
    if (due) {
      market->second.at = now;
    } else {
      answer.again = market->second.at + kClearingInterval - now;
    }
  }
  if (due) {
    auto shares = clear(cluster, name_space, objects, settings);
    const MutexLock lock(mutex_);
    Market& market = markets_[name_space];
    for (const auto& [name, share] : shares) {
      const auto before = market.shares.find(name);
      if (before == market.shares.end() || before->second.share != share.share) {
        answer.touched.push_back(kube::objectKey(name_space, name));
      }
    }
    market.shares = std::move(shares);
  }
  const MutexLock lock(mutex_);
  const Market& market = markets_[name_space];
  if (const auto found = market.shares.find(pod.meta.name.view()); found != market.shares.end()) {
    answer.share = found->second;
  }
  return answer;
}

bool limitedByQuota(const kube::Pod& pod, const policy::NamespaceObjects& objects,
                    bool requests_follow) {
  bool limited = false;
  for (const auto& quota : objects.quotas) {
    eachQuota(*quota, pod, requests_follow, [&](const policy::CpuQuota&) { limited = true; });
  }
  return limited;
}

kube::ApiResult<std::optional<Millicores>> roomNow(kube::Client& client, const kube::Pod& pod,
                                                   bool requests_follow) {
  const auto quotas =
      client.list<kube::ResourceQuota>({.name_space = pod.meta.namespace_.string()});
  if (!quotas) return kube::apiFailure(quotas.error());
  std::optional<Millicores> room;
  for (const auto& quota : quotas->items) {
    eachQuota(*quota, pod, requests_follow, [&](const policy::CpuQuota& cpu) {
      const Millicores left = std::max(Millicores(0), cpu.hard - cpu.used);
      room = std::min(room.value_or(left), left);
    });
  }
  return room;
}

}  // namespace mbcas::controller
