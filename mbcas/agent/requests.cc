#include "mbcas/agent/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/kube/types.h"
#include "mbcas/podallocation/pod_allocation.h"

namespace mbcas::agent {
namespace {

using podallocation::kAgentManager;
using podallocation::PodAllocation;

constexpr Nanos kTimeout = std::chrono::seconds(10);

// Force: the agent owns what it writes, whatever other writer touched it.
kube::Call applyCall(const kube::Kind& kind, std::string_view name_space, std::string_view name,
                     std::string body) {
  kube::Call call =
      kube::Client::patchCall(kind, name_space, name, kube::PatchType::kApply, std::move(body),
                              {.field_manager = kAgentManager, .force = true});
  call.timeout = kTimeout;
  call.retry = false;
  return call;
}

}  // namespace

kube::Call writeCall(const Wish& wish) {
  return applyCall(
      PodAllocation::kind(), wish.spec.name_space, wish.uid,
      podallocation::applySpec({.name = wish.spec.pod_name, .uid = wish.uid}, wish.spec));
}

kube::Call readCall(const Allocations::Read& read) {
  kube::Call call{.path = PodAllocation::kind().path(read.name_space, read.uid),
                  .timeout = kTimeout,
                  .retry = false};
  if (!read.newest) call.query.emplace_back("resourceVersion", "0");
  return call;
}

kube::Call leaseCall(const std::string& name_space, const std::string& node,
                     const std::string& holder, Nanos duration, WallTime now) {
  const std::string name = std::string(kLeasePrefix) + node;
  std::string body;
  JsonWriter json(body);
  json.beginObject();
  json.key("apiVersion").value(kube::Lease::kind().apiVersion());
  json.key("kind").value(kube::Lease::kind().name);
  json.key("metadata").beginObject();
  json.key("name").value(name).key("namespace").value(name_space);
  json.endObject();
  json.key("spec").beginObject();
  json.key("holderIdentity").value(holder);
  json.key("leaseDurationSeconds").value(std::chrono::ceil<std::chrono::seconds>(duration).count());
  json.key("renewTime").value(formatRfc3339(now, TimePrecision::kMicros));
  json.endObject().endObject();
  return applyCall(kube::Lease::kind(), name_space, name, std::move(body));
}

WriteResult writeResultOf(const kube::ApiError& error) {
  const bool ending = std::ranges::any_of(error.causes, [](const kube::ApiError::Cause& cause) {
    return cause.reason == "NamespaceTerminating";
  });
  if (error.notFound() || ending) return WriteResult::kGone;
  // A token may be renewed, a conflict may pass, and a server that has just started forbids
  // everything until it knows its roles.
  if (error.transient() || error.code == 401 || error.code == 403 || error.code == 409) {
    return WriteResult::kFailed;
  }
  return WriteResult::kRefused;
}

std::vector<kube::AccessQuestion> neededPermissions(const std::string& name_space, bool dry_run) {
  const std::string allocations(PodAllocation::kind().group);
  std::vector<kube::AccessQuestion> questions;
  for (const char* verb : {"list", "watch"}) {
    questions.push_back({.verb = verb, .resource = "pods"});
    questions.push_back({.verb = verb, .resource = "nodes"});
    questions.push_back({.verb = verb,
                         .resource = "configmaps",
                         .name_space = name_space,
                         .name = std::string(kSettingsName)});
  }
  questions.push_back({.verb = "get", .group = allocations, .resource = "podallocations"});
  if (dry_run) return questions;
  for (const char* verb : {"create", "patch"}) {
    questions.push_back({.verb = verb, .group = allocations, .resource = "podallocations"});
    questions.push_back({.verb = verb,
                         .group = std::string(kube::Lease::kind().group),
                         .resource = "leases",
                         .name_space = name_space});
  }
  return questions;
}

}  // namespace mbcas::agent
