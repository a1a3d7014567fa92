#include "mbcas/policy/quota.h"

#include <algorithm>

#include "mbcas/base/quantity.h"
#include "mbcas/market/solver.h"

namespace mbcas::policy {
namespace {

std::optional<Millicores> amount(const kube::List<kube::KeyValue>& list, std::string_view key) {
  const std::optional<std::string_view> text = kube::find(list, key);
  if (!text) return std::nullopt;
  const Result<Quantity> quantity = Quantity::parseSaturating(*text);
  if (!quantity) return std::nullopt;
  return std::clamp(quantity->millicores(), Millicores(0), market::kLargestAmount);
}

bool among(const kube::List<kube::Str>& values, std::string_view text) {
  return std::any_of(values.begin(), values.end(), [&](kube::Str value) { return value == text; });
}

bool inScope(std::string_view scope, const kube::Pod& pod) {
  if (scope == "BestEffort") return pod.qos == kube::QosClass::kBestEffort;
  if (scope == "NotBestEffort") return pod.qos != kube::QosClass::kBestEffort;
  if (scope == "Terminating") return pod.has_deadline;
  if (scope == "NotTerminating") return !pod.has_deadline;
  return true;
}

bool matches(const kube::ResourceQuota::ScopeExpression& expression, const kube::Pod& pod) {
  if (expression.scope != "PriorityClass") return inScope(expression.scope, pod);
  if (expression.op == "In") return among(expression.values, pod.priority_class);
  if (expression.op == "NotIn") return !among(expression.values, pod.priority_class);
  if (expression.op == "Exists") return !pod.priority_class.empty();
  return pod.priority_class.empty();  // DoesNotExist
}

// Solves, and gives every pod its min if that is not possible, which validate() rules out.
std::vector<Millicores> solve(const market::Problem& problem) {
  std::vector<Millicores> answer;
  answer.reserve(problem.pods.size());
  const Result<market::Clearing> clearing = market::clear(problem);
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    answer.push_back(clearing ? clearing->pods[i].cpu : problem.pods[i].min);
  }
  return answer;
}

}  // namespace

std::optional<CpuQuota> cpuQuota(const kube::ResourceQuota& quota, std::string_view resource) {
  // Admission enforces status.hard; a quota that is new has only spec.hard.
  std::optional<Millicores> hard = amount(quota.status_hard, resource);
  if (!hard) hard = amount(quota.hard, resource);
  if (!hard) return std::nullopt;
  return CpuQuota{quota.meta.name.string(), *hard,
                  amount(quota.status_used, resource).value_or(Millicores(0))};
}

bool covers(const kube::ResourceQuota& quota, const kube::Pod& pod) {
  for (const kube::Str scope : quota.scopes) {
    if (scope == "PriorityClass" ? pod.priority_class.empty() : !inScope(scope, pod)) return false;
  }
  return std::all_of(quota.scope_selector.begin(), quota.scope_selector.end(),
                     [&](const auto& expression) { return matches(expression, pod); });
}

Millicores countedLimit(const kube::Pod& pod) {
  Millicores running;
  Millicores largest_init;
  for (const kube::Container& container : pod.containers) {
    Millicores limit = container.limits.cpu().value_or(Millicores(0));
    if (const kube::ContainerStatus* status = pod.status(container.name)) {
      limit = std::max(limit, status->limits.cpu().value_or(Millicores(0)));
    }
    if (container.role == kube::ContainerRole::kInit) {
      largest_init = std::max(largest_init, limit);
    } else {
      running += limit;
    }
  }
  return std::max(running, largest_init);
}

Millicores quotaHeadroom(Millicores hard, const std::vector<QuotaMember>& members) {
  Millicores headroom(hard.count() / 10);
  for (const QuotaMember& member : members) {
    headroom = std::max(headroom, member.managed ? member.declared : member.counted);
  }
  return headroom;
}

std::vector<Millicores> quotaShares(Millicores hard, const std::vector<QuotaMember>& members) {
  // The part that managed containers cannot change is deducted first.
  Millicores fixed;
  Millicores declared;
  std::vector<std::size_t> managed;
  for (std::size_t i = 0; i < members.size(); ++i) {
    fixed += members[i].counted;
    if (!members[i].managed) continue;
    fixed -= std::min(members[i].limit, members[i].counted);
    declared += members[i].declared;
    managed.push_back(i);
  }
  const Millicores left = std::max(Millicores(0), hard - fixed);
  // Headroom is kept free of raises; it is not taken from what was declared.
  const Millicores capacity =
      std::max(left - quotaHeadroom(hard, members), std::min(left, declared));

  market::Problem wanted{.capacity = capacity};
  for (const std::size_t i : managed) {
    const QuotaMember& member = members[i];
    const Millicores max = std::clamp(member.wanted, member.floor, member.ceiling);
    const Millicores min = std::max(member.floor, std::min(member.declared, max));
    wanted.pods.push_back({.id = member.id,
                           .bid = member.weight,
                           .min = min,
                           .max = std::max(min, max),
                           .guarantee = std::min(member.guarantee, min)});
  }
  const std::vector<Millicores> first = solve(wanted);

  // CPU that no pod wants now is shared too, so that a surge need not wait for the next clearing.
  market::Problem spare = wanted;
  for (std::size_t k = 0; k < managed.size(); ++k) {
    spare.pods[k].min = first[k];
    spare.pods[k].guarantee = first[k];
    spare.pods[k].max = std::max(first[k], members[managed[k]].ceiling);
  }
  const std::vector<Millicores> second = solve(spare);
  std::vector<Millicores> shares(members.size());
  for (std::size_t k = 0; k < managed.size(); ++k) shares[managed[k]] = second[k];
  return shares;
}

}  // namespace mbcas::policy
