// mbcas restore: pods get back the CPU that they declared, with or without a controller.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/pause.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/words.h"
#include "mbcas/controller/restore.h"
#include "mbcas/policy/bounds.h"

namespace mbcas::cli {
namespace {

using PodPtr = std::shared_ptr<const kube::Pod>;

constexpr const char* kFooter = R"(Examples:
  mbcas restore shop/web-1
  mbcas restore --all        # pauses MBCAS first; then kubectl delete -k config
  mbcas restore --host       # limits of this machine's cgroups, after `mbcas run` was killed

What a pod declared is recorded in the status of its PodAllocation, and in the pod's annotation
mbcas.io/original-resources, which is removed in the end.
A pod that is managed may be changed again; to keep it as it is, opt out first:
kubectl annotate pod web-1 mbcas.io/managed=false
Who is no cluster-admin needs the ClusterRole mbcas-restore, and for --all the Role of that name.

Exit code: 0 done, 1 some pod could not be restored, 2 the command is wrong. With --best-effort 0
also where some pod could not be.)";

struct Flags {
  ClusterFlags cluster;
  std::string pod;
  bool all = false;
  bool host = false;
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string state = kHostState;
  double timeout = 30;
  double best_effort = 0;  // seconds; 0: no
};

void complain(std::string_view message) {
  cli::complain("mbcas restore", message);
}

// The object of this name, or null if there is none or it may not be read. By a list, because the
// controller's account, with which the chart restores, may list what it may not get.
template <class T>
std::shared_ptr<const T> named(kube::Client& client, std::string_view name_space,
                               std::string_view name) {
  auto list = client.list<T>({.name_space = std::string(name_space),
                              .field_selector = fmt::format("metadata.name={}", name)});
  return list && !list->items.empty() ? list->items.front() : nullptr;
}

// What restores the pod, as the controller itself would: what may not be read bounds nothing.
Result<std::vector<podallocation::OriginalCpu>> originalOf(kube::Client& client,
                                                           const kube::Pod& pod) {
  const std::string_view name_space = pod.meta.namespace_;
  const auto allocation = named<podallocation::PodAllocation>(client, name_space, pod.meta.uid);
  if (allocation && !allocation->original.empty()) {
    return policy::recordedOriginal(pod, allocation.get());
  }
  if (!controller::hasOriginal(pod)) return std::vector<podallocation::OriginalCpu>{};
  policy::NamespaceObjects objects;
  if (auto ranges = client.list<kube::LimitRange>({.name_space = std::string(name_space)})) {
    objects.ranges = std::move(ranges->items);
  }
  return policy::wayBack(pod, nullptr, objects, named<kube::Node>(client, "", pod.node).get());
}

// The controller may be at it too, so every step begins with the pod as it is: of an older one it
// would not be known whether the kubelet will have anything to do and say (Kubernetes 1.33).
Result<void> restoreOne(kube::Client& client, const kube::ObjectMeta& meta, Nanos timeout) {
  for (int tries = 0; tries < 10; ++tries) {
    const auto read = client.get<kube::Pod>(meta.namespace_, meta.name);
    if (!read) return read.error().notFound() ? Result<void>{} : failure(read.error().toError());
    const kube::Pod& pod = **read;
    const auto original = originalOf(client, pod);
    if (!original) return failure(original.error());
    const resize::Request request = controller::restoreRequest(pod, *original);
    if (request.containers.empty()) {
      if (!controller::hasOriginal(pod)) return {};
      const auto forgotten =
          client.patch<kube::Pod>(pod.meta.namespace_, pod.meta.name, kube::PatchType::kMerge,
                                  controller::forgetOriginal(pod), {.field_manager = "mbcas-cli"});
      if (forgotten || forgotten.error().notFound()) return {};
      if (!forgotten.error().conflict()) return failure(forgotten.error().toError());
      continue;
    }
    resize::Outcome outcome = resize::submit(client, pod, request, {.field_manager = "mbcas-cli"});
    if (outcome.verdict == resize::Verdict::kAccepted) {
      outcome = resize::wait(client, *outcome.attempt, timeout);
    }
    if (outcome.verdict == resize::Verdict::kGone) return {};
    if (outcome.verdict != resize::Verdict::kDone) {
      return failure(fmt::format("{}: {}", resize::name(outcome.verdict), outcome.message));
    }
  }
  return failure("another writer keeps changing it");
}

// Whether all could be restored. After `end` no other pod is begun with.
bool restoreEach(kube::Client& client, const std::vector<PodPtr>& pods, Nanos timeout,
                 std::optional<MonotonicTime> end) {
  std::size_t failed = 0;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (end) {
      const Nanos left = *end - client.clock().monotonic();
      if (left <= Nanos(0)) {
        complain(fmt::format("no time left for {}", countText(pods.size() - i, "pod")));
        return false;
      }
      timeout = std::min(timeout, left);
    }
    const std::string key = kube::objectKey(pods[i]->meta);
    if (const Result<void> done = restoreOne(client, pods[i]->meta, timeout); done) {
      say(fmt::format("{}: restored", key));
    } else {
      complain(fmt::format("{}: {}", key, done.error().message()));
      ++failed;
    }
  }
  return failed == 0;
}

int restorePods(const Flags& flags);

int restoreCommand(const Flags& flags) {
  if (int{flags.all} + int{flags.host} + int{!flags.pod.empty()} != 1) {
    complain("name one pod, as NAMESPACE/POD, or give --all, or --host");
    return kUsage;
  }
  if (!flags.pod.empty() && !isTarget(flags.pod)) {
    complain(fmt::format("{}: not NAMESPACE/POD or POD", flags.pod));
    return kUsage;
  }
  if (flags.best_effort > 0 && !flags.all) {
    complain("--best-effort goes with --all");
    return kUsage;
  }
  if (flags.host) return restoreHost(flags.cgroup_root, flags.state);
  const int exit_code = restorePods(flags);
  return flags.best_effort > 0 ? kDone : exit_code;
}

int restorePods(const Flags& flags) {
  const auto failed = [](const std::string& message) {
    complain(message);
    return kFailed;
  };
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return failed(connection.error().message());
  kube::Client& client = (*connection)->client();
  std::optional<MonotonicTime> end;
  if (flags.best_effort > 0) end = client.clock().monotonic() + nanos(flags.best_effort);
  std::vector<PodPtr> pods;
  if (flags.all) {
    // Else the controller would manage them again. Where it is not installed there is none.
    const auto paused = setPaused(client, flags.cluster.system_namespace, true);
    if (!paused && !paused.error().notFound()) return failed(paused.error().describe());
    auto list = client.list<kube::Pod>();
    if (!list) return failed(list.error().describe());
    const auto allocations = client.list<podallocation::PodAllocation>();
    if (!allocations && !allocations.error().notFound()) {
      return failed(allocations.error().describe());
    }
    std::set<std::string, std::less<>> recorded;  // UIDs of pods
    if (allocations) {
      for (const auto& allocation : allocations->items) {
        if (!allocation->original.empty()) recorded.insert(allocation->meta.name.string());
      }
    }
    for (PodPtr& pod : list->items) {
      const bool changed = controller::hasOriginal(*pod) || recorded.contains(pod->meta.uid.view());
      if (changed && !pod->terminal()) pods.push_back(std::move(pod));
    }
    say(fmt::format("{} to restore", countText(pods.size(), "pod")));
  } else {
    const Target target = targetOf(flags.pod, (*connection)->defaultNamespace());
    auto pod = client.get<kube::Pod>(target.name_space, target.pod);
    if (!pod) return failed(pod.error().describe());
    const auto original = originalOf(client, **pod);
    if (original && original->empty()) {
      say(fmt::format("{}: is as it was declared", kube::objectKey((*pod)->meta)));
      return kDone;
    }
    pods.push_back(*std::move(pod));
  }
  return restoreEach(client, pods, nanos(flags.timeout), end) ? kDone : kFailed;
}

}  // namespace

void addRestore(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("restore", "Give pods back the CPU requests and limits they declared");
  command->footer(kFooter);
  command->add_option("POD", flags->pod, "NAMESPACE/POD, or POD");
  command->add_flag("--all", flags->all, "Every pod that was changed, and pause");
  command->add_flag("--host", flags->host, "This machine's cgroups, as `mbcas run` found them");
  command->add_option("--state", flags->state, "With --host: the file that remembers them")
      ->capture_default_str();
  command->add_option("--cgroup-root", flags->cgroup_root, "With --host: where they are mounted")
      ->capture_default_str();
  addSeconds(*command, "--timeout", flags->timeout, "For each pod");
  addSeconds(*command, "--best-effort", flags->best_effort,
             "With --all: for at most this long, and exit with 0 whatever could not be restored")
      ->default_str("");
  addSystemNamespace(*command, flags->cluster);
  addClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = restoreCommand(*flags); });
}

}  // namespace mbcas::cli
