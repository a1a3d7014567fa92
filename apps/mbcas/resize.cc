// mbcas resize: change the CPU of a running pod in place.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/targets.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/base/quantity.h"
#include "mbcas/resize/resize.h"

namespace mbcas::app {
namespace {

using kube::Pod;
using resize::ContainerCpu;
using resize::Outcome;
using resize::Policy;
using resize::Verdict;

constexpr const char* kFooter = R"(Examples:
  mbcas resize default/web-1 --cpu 750m --wait
  mbcas resize -n shop web-1 --container server --cpu 1.5 --dry-run
  mbcas resize -n shop deploy/web --cpu 1     # each of its pods; new ones are as the template says

--cpu is the sum over the chosen containers, rounded up to a step of 10m. Several containers share
it in proportion to what they have. Requests stay as they are unless --policy says otherwise. No
container is restarted, and a container without a CPU limit is not given one, because Kubernetes
could never remove it again.

Exit code: 0 done (or accepted, without --wait), 1 refused, failed or not done in time, 2 the
command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  std::string pod;
  std::vector<std::string> containers;
  std::string cpu;
  std::string policy = "limits";
  std::string dry_run;  // "", "client", "server"
  bool wait = false;
  double timeout = 30;
  std::string output;
};

void complain(std::string_view message) {
  app::complain("mbcas resize", message);
}

std::string text(std::optional<Millicores> cpu) {
  return cpu ? fmt::format("{}m", cpu->count()) : "none";
}

Policy policyOf(std::string_view name) {
  if (name == "requests") return Policy::kRequests;
  return name == "both" ? Policy::kBoth : Policy::kLimits;
}

class Report {
 public:
  Report(const Flags& flags, const std::string& name_space, const std::string& pod,
         std::vector<std::string>& documents)
      : flags_(flags),
        name_space_(name_space),
        pod_(pod),
        key_(name_space + "/" + pod),
        documents_(documents) {}

  // The exit code. A document goes to `documents`, and says all that there is to say.
  int end(const Outcome& outcome, const Pod* pod = nullptr,
          const std::vector<ContainerCpu>& containers = {}) {
    const bool good = outcome.verdict == Verdict::kAccepted || outcome.verdict == Verdict::kDone;
    if (isDocument(flags_.output)) {
      documents_.push_back(json(outcome, pod, containers));
    } else if (!good) {
      complain(fmt::format("{}: {}", key_, why(outcome)));
    } else if (flags_.output == "name") {
      say("pod/" + pod_);
    } else {
      say(fmt::format("{}: {}", line(containers, *pod), verdictText(outcome)));
    }
    return good ? kDone : kFailed;
  }

 private:
  std::string verdictText(const Outcome& outcome) const {
    if (!flags_.dry_run.empty())
      return fmt::format("would be accepted ({} dry run)", flags_.dry_run);
    return outcome.verdict == Verdict::kDone ? "done" : "accepted";
  }

  static std::string why(const Outcome& outcome) {
    std::string what(name(outcome.verdict));
    if (outcome.refusal != resize::Refusal::kNone) {
      what += fmt::format(" ({})", name(outcome.refusal));
    }
    return outcome.message.empty() ? what : fmt::format("{}: {}", what, outcome.message);
  }

  std::string line(const std::vector<ContainerCpu>& containers, const Pod& pod) const {
    std::vector<std::string> parts;
    for (const ContainerCpu& wanted : containers) {
      const kube::Container* now = pod.container(wanted.name);
      if (wanted.request) {
        parts.push_back(fmt::format("{} request {} -> {}", wanted.name, text(now->requests.cpu()),
                                    text(wanted.request)));
      }
      if (wanted.limit) {
        parts.push_back(fmt::format("{} limit {} -> {}", wanted.name, text(now->limits.cpu()),
                                    text(wanted.limit)));
      }
    }
    return fmt::format("{}: {}", key_, fmt::join(parts, ", "));
  }

  std::string json(const Outcome& outcome, const Pod* pod,
                   const std::vector<ContainerCpu>& containers) const {
    std::string out;
    JsonWriter json(out);
    json.beginObject();
    json.key("namespace").value(name_space_).key("pod").value(pod_);
    if (pod != nullptr) json.key("uid").value(pod->meta.uid);
    json.key("verdict").value(name(outcome.verdict));
    if (outcome.refusal != resize::Refusal::kNone) {
      json.key("refusal").value(name(outcome.refusal));
    }
    if (!outcome.message.empty()) json.key("message").value(outcome.message);
    if (!flags_.dry_run.empty()) json.key("dryRun").value(flags_.dry_run);
    json.key("containers").beginArray();
    for (const ContainerCpu& wanted : containers) {
      const kube::Container* now = pod->container(wanted.name);
      json.beginObject().key("name").value(wanted.name);
      const auto change = [&](std::string_view key, std::optional<Millicores> from,
                              std::optional<Millicores> to) {
        if (!to) return;
        json.key(key).beginObject();
        if (from) json.key("from").value(text(from));
        json.key("to").value(text(to)).endObject();
      };
      change("request", now->requests.cpu(), wanted.request);
      change("limit", now->limits.cpu(), wanted.limit);
      json.endObject();
    }
    json.endArray().endObject();
    return out;
  }

  const Flags& flags_;
  const std::string& name_space_;
  const std::string& pod_;
  const std::string key_;
  std::vector<std::string>& documents_;
};

Outcome rejected(resize::Refusal refusal, std::string message) {
  return {.verdict = Verdict::kRejected, .refusal = refusal, .message = std::move(message)};
}

// Less than the containers request: split() gives them that much nevertheless.
std::optional<Outcome> tooLittle(const std::vector<ContainerCpu>& containers, Millicores wanted) {
  Millicores sum(0);
  for (const ContainerCpu& container : containers) {
    sum += container.limit.value_or(Millicores(0));
  }
  if (sum <= resize::roundUpToStep(wanted)) return std::nullopt;
  return rejected(
      resize::Refusal::kRequestAboveLimit,
      fmt::format("{} is below what its containers request, {}", text(wanted), text(sum)));
}

int resizePod(kube::Client& client, const Flags& flags, const std::string& name_space,
              const std::string& name, Millicores cpu, std::vector<std::string>& documents) {
  Report report(flags, name_space, name, documents);
  const auto pod = client.get<Pod>(name_space, name);
  if (!pod) {
    Outcome outcome = resize::interpret(pod.error());
    if (const std::string remedy = remedyFor(pod.error()); !remedy.empty()) {
      outcome.message += "; " + remedy;
    }
    return report.end(outcome);
  }
  Result<std::vector<ContainerCpu>> containers =
      resize::split(**pod, cpu, policyOf(flags.policy), flags.containers);
  if (!containers) {
    return report.end(rejected(flags.containers.empty() ? resize::Refusal::kNoLimit
                                                        : resize::Refusal::kNoSuchContainer,
                               containers.error().message()),
                      pod->get());
  }
  if (const std::optional<Outcome> outcome = tooLittle(*containers, cpu)) {
    return report.end(*outcome, pod->get(), *containers);
  }
  const resize::Request request{.containers = *containers};
  if (flags.dry_run == "client") {
    const std::optional<resize::Rejection> rejection = check(**pod, request);
    return report.end(rejection ? rejected(rejection->refusal, rejection->message)
                                : Outcome{.verdict = Verdict::kAccepted},
                      pod->get(), *containers);
  }
  Outcome outcome = submit(client, **pod, request,
                           {.field_manager = "mbcas-cli", .dry_run = flags.dry_run == "server"});
  if (outcome.verdict == Verdict::kAccepted && flags.wait && flags.dry_run.empty()) {
    outcome = wait(client, *outcome.attempt, nanos(flags.timeout));
  }
  return report.end(outcome, pod->get(), *containers);
}

int resizeCommand(const Flags& flags) {
  const Result<Quantity> cpu = Quantity::parse(flags.cpu);
  if (!cpu || *cpu <= Quantity() || cpu->millicores() > Millicores(10'000'000)) {
    complain(fmt::format("--cpu {}: not an amount of CPU such as 750m or 1.5", flags.cpu));
    return kUsage;
  }
  const std::optional<cli::Target> target = cli::parseTarget(flags.pod);
  if (!target) {
    complain(notATarget(flags.pod));
    return kUsage;
  }
  const auto connection = Connection::open(flags.cluster);
  if (!connection) {
    complain(connection.error().message());
    return kFailed;
  }
  kube::Client& client = (*connection)->client();
  const auto targets = findTargets(client, *target, (*connection)->defaultNamespace());
  if (!targets) {
    complain(targets.error().message());
    return kFailed;
  }
  if (targets->pods.size() > 1) complain(targets->announcement());
  std::vector<std::string> documents;
  int exit_code = kDone;
  for (const std::string& pod : targets->pods) {
    exit_code = std::max(exit_code, resizePod(client, flags, targets->name_space, pod,
                                              cpu->millicores(), documents));
  }
  if (isDocument(flags.output)) {
    const std::string all = fmt::format("{}", fmt::join(documents, ","));
    printDocument(targets->workload.empty() ? all : R"({"pods":[)" + all + "]}", flags.output);
  }
  return exit_code;
}

}  // namespace

void addResize(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("resize", "Change the CPU of a running pod in place");
  command->footer(kFooter);
  command->add_option("POD", flags->pod, kTargetHelp)->required();
  command->add_option("--cpu", flags->cpu, "CPU to have, such as 750m or 1.5")
      ->type_name("CPU")
      ->required();
  command
      ->add_option("-c,--container", flags->containers,
                   "Container or sidecar to resize; may be repeated (default: all with a limit)")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  oneOf(command->add_option("--policy", flags->policy, "What to change"),
        {"limits", "requests", "both"})
      ->capture_default_str();
  addDryRun(*command, flags->dry_run);
  command->add_flag("--wait", flags->wait, "Wait until the kubelet has applied it");
  addDuration(*command, "--timeout", flags->timeout, "With --wait: how long, for each pod");
  addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
  addClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = resizeCommand(*flags); });
}

}  // namespace mbcas::app
