// mbcas restore: pods get back the CPU that they declared, with or without a controller.
#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include "apps/mbcas/targets.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/cli/words.h"
#include "mbcas/controller/restore.h"
#include "mbcas/policy/bounds.h"

namespace mbcas::app {
namespace {

using PodPtr = std::shared_ptr<const kube::Pod>;

constexpr const char* kFooter = R"(Examples:
  mbcas restore shop/web-1
  mbcas restore -n shop deploy/web       # each of its pods
  mbcas restore --all --dry-run          # what would be restored; nothing is changed
  mbcas restore --all        # pauses MBCAS first; then kubectl delete -k config
  mbcas restore --host       # limits of this machine's cgroups, after `mbcas run` was killed

What a pod declared is recorded in the status of its PodAllocation, and in the pod's annotation
mbcas.io/original-resources, which the command removes in the end. A managed pod may be changed
again. To keep it as it is, opt it out first:

  kubectl annotate pod web-1 mbcas.io/managed=false

Users who are not cluster-admins need the ClusterRole mbcas-restore, and for --all the Role of that
name.

Exit code: 0 done, 1 some pod could not be restored, 2 the command is wrong. With --best-effort it
is 0 even if some pod could not be restored.)";

struct Flags {
  ClusterFlags cluster;
  std::string pod;
  bool all = false;
  bool host = false;
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string state = kHostState;
  double timeout = 30;
  double best_effort = 0;  // seconds; 0: no
  std::string dry_run;
  std::string output;
};

void complain(std::string_view message) {
  app::complain("mbcas restore", message);
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

// What became of each pod: a line at once, or one document in the end.
class Report {
 public:
  explicit Report(const Flags& flags) : flags_(flags), json_(text_) {
    json_.beginObject();
    if (!flags.dry_run.empty()) json_.key("dryRun").value(flags.dry_run);
    json_.key("pods").beginArray();
  }
  // `result` in a word or two; details for people.
  void done(const kube::ObjectMeta& pod, std::string_view result, std::string_view details = "") {
    if (isDocument(flags_.output)) {
      add(pod, result, details);
    } else if (flags_.output == "name") {
      say(fmt::format("pod/{}", pod.name.view()));
    } else {
      say(fmt::format("{}: {}{}{}", kube::objectKey(pod), result, details.empty() ? "" : ": ",
                      details));
    }
  }
  void failed(const kube::ObjectMeta& pod, std::string_view why) {
    if (isDocument(flags_.output)) {
      add(pod, "failed", why);
    } else {
      complain(fmt::format("{}: {}", kube::objectKey(pod), why));
    }
  }
  void remark(const std::string& text) const {
    if (flags_.output == "text") say(text);
  }
  void end() {
    json_.endArray().endObject();
    if (isDocument(flags_.output)) printDocument(text_, flags_.output);
  }

 private:
  void add(const kube::ObjectMeta& pod, std::string_view result, std::string_view details) {
    json_.beginObject();
    json_.key("namespace").value(pod.namespace_.view()).key("pod").value(pod.name.view());
    json_.key("result").value(result);
    if (!details.empty()) json_.key("details").value(details);
    json_.endObject();
  }

  const Flags& flags_;
  std::string text_;
  JsonWriter json_;
};

// "main limit 1200m -> 2000m"
std::string changesText(const kube::Pod& pod, const resize::Request& request) {
  std::vector<std::string> parts;
  const auto change = [&](const std::string& container, const char* what,
                          const std::optional<Millicores>& from,
                          const std::optional<Millicores>& to) {
    if (to && from != to) {
      parts.push_back(
          fmt::format("{} {} {} -> {}", container, what, cli::cpuText(from), cli::cpuText(*to)));
    }
  };
  for (const resize::ContainerCpu& wanted : request.containers) {
    const kube::Container* const now = pod.container(wanted.name);
    if (now == nullptr) continue;
    change(wanted.name, "request", now->requests.cpu(), wanted.request);
    change(wanted.name, "limit", now->limits.cpu(), wanted.limit);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Whether it would succeed, as far as is known without doing it.
bool tryRestore(kube::Client& client, const kube::Pod& pod, const Flags& flags, Report& report) {
  const auto original = originalOf(client, pod);
  if (!original) {
    report.failed(pod.meta, original.error().message());
    return false;
  }
  const resize::Request request = controller::restoreRequest(pod, *original);
  if (request.containers.empty()) {
    report.done(pod.meta, "is as it was declared");
    return true;
  }
  std::string refusal;
  if (flags.dry_run == "server") {
    const resize::Outcome outcome =
        resize::submit(client, pod, request, {.field_manager = "mbcas-cli", .dry_run = true});
    if (outcome.verdict != resize::Verdict::kAccepted &&
        outcome.verdict != resize::Verdict::kDone) {
      refusal = fmt::format("{}: {}", resize::name(outcome.verdict), outcome.message);
    }
  } else if (const auto rejection = resize::check(pod, request)) {
    refusal = rejection->message;
  }
  if (!refusal.empty()) {
    report.failed(pod.meta, refusal);
    return false;
  }
  report.done(pod.meta, fmt::format("would be restored ({} dry run)", flags.dry_run),
              changesText(pod, request));
  return true;
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
bool restoreEach(kube::Client& client, const std::vector<PodPtr>& pods, const Flags& flags,
                 std::optional<MonotonicTime> end, Report& report) {
  std::size_t failed = 0;
  Nanos timeout = nanos(flags.timeout);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (end) {
      const Nanos left = *end - client.clock().monotonic();
      if (left <= Nanos(0)) {
        complain(fmt::format("no time left for {}", cli::countText(pods.size() - i, "pod")));
        return false;
      }
      timeout = std::min(timeout, left);
    }
    if (!flags.dry_run.empty()) {
      failed += tryRestore(client, *pods[i], flags, report) ? 0 : 1;
    } else if (const Result<void> done = restoreOne(client, pods[i]->meta, timeout); done) {
      report.done(pods[i]->meta, "restored");
    } else {
      report.failed(pods[i]->meta, done.error().message());
      ++failed;
    }
  }
  return failed == 0;
}

int restorePods(const Flags& flags);

int restoreCommand(const Flags& flags) {
  if (int{flags.all} + int{flags.host} + int{!flags.pod.empty()} != 1) {
    complain(fmt::format("name pods as {}, or give --all, or --host", kTargetHelp));
    return kUsage;
  }
  if (!flags.pod.empty() && !cli::parseTarget(flags.pod)) {
    complain(notATarget(flags.pod));
    return kUsage;
  }
  if (flags.best_effort > 0 && !flags.all) {
    complain("--best-effort goes with --all");
    return kUsage;
  }
  if (flags.host) {
    return flags.dry_run.empty() ? restoreHost(flags.cgroup_root, flags.state)
                                 : showHostRestore(flags.state);
  }
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
  Report report(flags);
  if (flags.all) {
    // Else the controller would manage them again. Where it is not installed there is none.
    if (flags.dry_run != "client") {
      const auto paused =
          setPaused(client, flags.cluster.system_namespace, true, !flags.dry_run.empty());
      if (!paused && !paused.error().notFound()) return failed(explained(paused.error()));
    }
    auto list = client.list<kube::Pod>();
    if (!list) return failed(explained(list.error()));
    const auto allocations = client.list<podallocation::PodAllocation>();
    if (!allocations && !allocations.error().notFound()) {
      return failed(explained(allocations.error()));
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
    report.remark(fmt::format("{} to restore", cli::countText(pods.size(), "pod")));
  } else {
    const auto targets =
        findTargets(client, *cli::parseTarget(flags.pod), (*connection)->defaultNamespace());
    if (!targets) return failed(targets.error().message());
    if (targets->pods.size() > 1) complain(targets->announcement());
    for (const std::string& name : targets->pods) {
      auto pod = client.get<kube::Pod>(targets->name_space, name);
      if (!pod) {
        return failed(
            explained(pod.error()) +
            (pod.error().notFound()
                 ? fmt::format("; mbcas pods list -n {} lists its pods", targets->name_space)
                 : ""));
      }
      const auto original = originalOf(client, **pod);
      if (original && original->empty()) {
        report.done((*pod)->meta, "is as it was declared");
      } else {
        pods.push_back(*std::move(pod));
      }
    }
  }
  const bool all = restoreEach(client, pods, flags, end, report);
  report.end();
  return all ? kDone : kFailed;
}

}  // namespace

void addRestore(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("restore", "Give pods back the CPU requests and limits they declared");
  command->footer(kFooter);
  command->add_option("POD", flags->pod, kTargetHelp);
  command->add_flag("--all", flags->all, "Every pod that was changed, and pause");
  addDryRun(*command, flags->dry_run);
  addDuration(*command, "--timeout", flags->timeout, "How long to wait for each pod");
  addDuration(*command, "--best-effort", flags->best_effort,
              "With --all: for at most this long, and exit with 0 whatever could not be restored");
  addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
  command->add_flag("--host", flags->host, "This machine's cgroups, as `mbcas run` found them")
      ->group(kHostGroup);
  command->add_option("--state", flags->state, "With --host: the file that remembers them")
      ->type_name("FILE")
      ->group(kHostGroup)
      ->capture_default_str();
  command->add_option("--cgroup-root", flags->cgroup_root, "With --host: where they are mounted")
      ->type_name("FOLDER")
      ->group(kHostGroup)
      ->capture_default_str();
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = restoreCommand(*flags); });
}

}  // namespace mbcas::app
