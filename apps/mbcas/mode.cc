// mbcas mode: how far MBCAS may go, in the cluster or in one namespace.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/pause.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/controller/cluster.h"
#include "mbcas/kube/json_cursor.h"
#include "mbcas/policy/names.h"
#include "mbcas/policy/settings.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas mode                        # what holds where
  mbcas mode recommend              # for the cluster: look first
  mbcas mode full -n shop           # one namespace, whatever the cluster's mode is
  mbcas mode --reset -n shop        # the namespace follows the cluster again

  off         every pod has what it declared
  recommend   the same, and PodAllocations say what would be set
  raise-only  limits are raised, never set below the declared one
  full        the same, but a pod may be bound for a more important one

Without -n the mode is that of the cluster: the key `mode` of the ConfigMap of MBCAS. If the
controller was started with --mode (settings.mode of the chart), it writes that mode there whenever
a replica begins to lead. With -n the mode is the label mbcas.io/mode of the namespace.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

struct Flags {
  ClusterFlags cluster;
  std::string mode;
  bool reset = false;
  std::string dry_run;
  std::string output;
};

int fail(const std::string& message) {
  complain("mbcas mode", message);
  return kFailed;
}

// What the controller was started with.
struct ControllerFlags {
  bool dry_run = false;
  std::optional<std::string> mode{};
  std::optional<std::string> initial_mode{};
};

// Nothing: it cannot be read, or is not there.
std::optional<ControllerFlags> controllerFlags(kube::Client& client, const std::string& where) {
  const auto body = client.perform(
      {.path = fmt::format("/apis/apps/v1/namespaces/{}/deployments", where),
       .query = {{"labelSelector",
                  "app.kubernetes.io/part-of=mbcas,app.kubernetes.io/component=controller"}}});
  if (!body) return std::nullopt;
  ControllerFlags found;
  bool any = false;
  const auto inside = [](std::string_view wanted, auto visit) {
    return [wanted, visit](std::string_view key, kube::JsonCursor value) {
      if (key == wanted) visit(value);
    };
  };
  const auto argument = [&](kube::JsonCursor value) {
    const std::string_view text = value.text();
    if (text == "--dry-run" || text == "--dry-run=true") found.dry_run = true;
    if (text.starts_with("--mode=")) found.mode = text.substr(7);
    if (text.starts_with("--initial-mode=")) found.initial_mode = text.substr(15);
  };
  const auto container = [&](kube::JsonCursor value) {
    any = true;
    value.members(inside("args", [&](kube::JsonCursor args) { args.elements(argument); }));
  };
  const auto item = [&](kube::JsonCursor value) {
    value.members(inside("spec", [&](kube::JsonCursor spec) {
      spec.members(inside("template", [&](kube::JsonCursor pod) {
        pod.members(inside("spec", [&](kube::JsonCursor pod_spec) {
          pod_spec.members(inside(
              "containers", [&](kube::JsonCursor containers) { containers.elements(container); }));
        }));
      }));
    }));
  };
  kube::JsonParser parser;
  std::string text = *body;
  const Result<void> parsed = parser.parse(text, [&](kube::JsonCursor root) {
    root.members(inside("items", [&](kube::JsonCursor items) { items.elements(item); }));
  });
  if (!parsed || !any) return std::nullopt;
  return found;
}

struct Shown {
  std::string scope;  // a namespace; empty: the cluster
  std::string mode;
  std::string set_by;
};

kube::ApiResult<std::vector<Shown>> modes(kube::Client& client, const Flags& flags,
                                          const std::optional<ControllerFlags>& started) {
  const std::string& where = flags.cluster.system_namespace;
  std::vector<Shown> rows;
  const auto settings = client.get<kube::ConfigMap>(where, controller::kSettingsName);
  if (!settings && !settings.error().notFound()) return kube::apiFailure(settings.error());
  const auto own =
      settings ? kube::find((*settings)->data, "mode") : std::optional<std::string_view>();
  if (own) {
    rows.push_back(
        {"", std::string(*own), fmt::format("ConfigMap {}/{}", where, controller::kSettingsName)});
  } else if (started && started->mode) {
    rows.push_back({"", *started->mode, "the controller's flag --mode"});
  } else if (started && started->initial_mode) {
    rows.push_back({"", *started->initial_mode, "the controller's flag --initial-mode"});
  } else {
    rows.push_back({"", std::string(policy::name(policy::Settings{}.mode)),
                    started ? "the default" : "the default, or the controller's flag --mode"});
  }
  const auto namespaces =
      client.list<kube::Namespace>({.label_selector = std::string(policy::kMode)});
  if (!namespaces) return kube::apiFailure(namespaces.error());
  for (const auto& each : namespaces->items) {
    const auto label = kube::find(each->meta.labels, policy::kMode);
    if (label &&
        (flags.cluster.name_space.empty() || flags.cluster.name_space == each->meta.name.view())) {
      rows.push_back({std::string(each->meta.name.view()), std::string(*label),
                      fmt::format("label {}", policy::kMode)});
    }
  }
  return rows;
}

int show(kube::Client& client, const Flags& flags, const std::optional<ControllerFlags>& started) {
  const auto rows = modes(client, flags, started);
  if (!rows) return fail(explained(rows.error()));
  if (flags.output == "name") {
    for (const Shown& row : *rows) {
      fmt::print("{}\n", row.scope.empty() ? fmt::format("configmap/{}", controller::kSettingsName)
                                           : fmt::format("namespace/{}", row.scope));
    }
  } else if (isDocument(flags.output)) {
    std::string json;
    JsonWriter writer(json);
    writer.beginObject().key("cluster").value(rows->front().mode);
    writer.key("namespaces").beginObject();
    for (const Shown& row : *rows) {
      if (!row.scope.empty()) writer.key(row.scope).value(row.mode);
    }
    writer.endObject();
    if (started) writer.key("controllerDryRun").value(started->dry_run);
    writer.endObject();
    printDocument(json, flags.output);
  } else {
    using Align = view::Table::Align;
    view::Table table({{"SCOPE", Align::kLeft}, {"MODE", Align::kLeft}, {"SET BY", Align::kLeft}});
    for (const Shown& row : *rows) {
      table.row({row.scope.empty() ? "the cluster" : row.scope, row.mode, row.set_by});
    }
    fmt::print("{}", table.toString(false));
  }
  return kDone;
}

// What follows from it.
std::string_view meaning(std::string_view mode) {
  if (mode == "off") return "every pod has what it declared";
  if (mode == "recommend") return "no limit is changed; PodAllocations say what would be set";
  if (mode == "raise-only") return "limits are raised, never set below what was declared";
  return "limits are raised, and a pod may be bound for a more important one";
}

kube::ApiResult<void> write(kube::Client& client, const Flags& flags) {
  const bool dry_run = !flags.dry_run.empty();
  const std::string& name_space = flags.cluster.name_space;
  if (name_space.empty()) {
    return writeSetting(client, flags.cluster.system_namespace, "mode",
                        flags.reset ? std::nullopt : std::optional<std::string_view>(flags.mode),
                        dry_run);
  }
  const std::string value = flags.reset ? "null" : fmt::format("\"{}\"", flags.mode);
  const auto written = client.patch<kube::Namespace>(
      "", name_space, kube::PatchType::kMerge,
      fmt::format(R"({{"metadata":{{"labels":{{"{}":{}}}}}}})", policy::kMode, value),
      {.dry_run = dry_run});
  if (!written) return kube::apiFailure(written.error());
  return {};
}

int set(kube::Client& client, const Flags& flags) {
  if (flags.dry_run != "client") {
    if (const auto written = write(client, flags); !written) {
      return fail(explained(written.error()));
    }
  }
  const std::string& name_space = flags.cluster.name_space;
  const std::string scope =
      name_space.empty() ? "the cluster" : fmt::format("namespace {}", name_space);
  if (isDocument(flags.output)) {
    std::string json;
    JsonWriter writer(json);
    writer.beginObject();
    if (!name_space.empty()) writer.key("namespace").value(name_space);
    writer.key("mode").value(flags.reset ? std::string_view() : std::string_view(flags.mode));
    if (!flags.dry_run.empty()) writer.key("dryRun").value(flags.dry_run);
    writer.endObject();
    printDocument(json, flags.output);
  } else if (flags.output == "name") {
    fmt::print("{}\n", name_space.empty() ? fmt::format("configmap/{}", controller::kSettingsName)
                                          : fmt::format("namespace/{}", name_space));
  } else {
    const std::string what =
        !flags.reset ? fmt::format("mode {}: {}", flags.mode, meaning(flags.mode))
        : name_space.empty()
            ? std::string("no mode of its own: that of the controller's flags holds, or full")
            : std::string("no mode of its own: that of the cluster holds");
    fmt::print("{} {} {}{}\n", scope, flags.dry_run.empty() ? "has" : "would have", what,
               flags.dry_run.empty() ? "" : fmt::format(" ({} dry run)", flags.dry_run));
  }
  return kDone;
}

int modeCommand(const Flags& flags) {
  const auto connection = Connection::open(flags.cluster);
  if (!connection) return fail(connection.error().message());
  kube::Client& client = (*connection)->client();
  const auto started = controllerFlags(client, flags.cluster.system_namespace);
  const int code =
      flags.mode.empty() && !flags.reset ? show(client, flags, started) : set(client, flags);
  if (code == kDone && started && started->dry_run) {
    complain(
        "mbcas mode",
        "the controller runs with --dry-run (overlays/read-only, or controller.dryRun of the "
        "chart) and changes no pod, whatever the mode; install it without that flag to let it act");
  }
  if (code == kDone && !flags.mode.empty() && flags.cluster.name_space.empty() && started &&
      started->mode && *started->mode != flags.mode) {
    complain("mbcas mode",
             fmt::format("the controller was started with --mode={} (settings.mode of the chart), "
                         "and sets that mode again when another replica begins to lead; install it "
                         "without, or with --initial-mode",
                         *started->mode));
  }
  return code;
}

}  // namespace

void addMode(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const command = app.add_subcommand(
      "mode", "Show or set how far MBCAS may go: off, recommend, raise-only, full");
  command->footer(kFooter);
  CLI::Option* const mode =
      oneOf(command->add_option("MODE", flags->mode, "The new mode; without it, what holds now"),
            {"off", "recommend", "raise-only", "full"});
  command->add_flag("--reset", flags->reset, "No mode of its own: a namespace follows the cluster")
      ->excludes(mode);
  addDryRun(*command, flags->dry_run);
  addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
  addClusterFlags(*command, flags->cluster);
  addSystemNamespace(*command, flags->cluster);
  command->callback([flags, &exit_code] { exit_code = modeCommand(*flags); });
}

}  // namespace mbcas::app
