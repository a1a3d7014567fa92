#include "mbcas/cli/cluster_checkup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "mbcas/agent/requests.h"
#include "mbcas/cli/questions.h"
#include "mbcas/cli/words.h"
#include "mbcas/control/weight.h"
#include "mbcas/controller/agents.h"
#include "mbcas/controller/cluster.h"
#include "mbcas/controller/startup.h"

namespace mbcas::cli {
namespace {

using Level = Finding::Level;
using kube::JsonCursor;

constexpr const char* kDefinition = "podallocations.allocation.mbcas.io";
constexpr const char* kVersion = "v1alpha1";
constexpr std::string_view kFields[] = {"spec.namespace",
                                        "spec.podName",
                                        "spec.nodeName",
                                        "spec.desiredCPULimit",
                                        "spec.containers",
                                        "spec.wantedCPULimit",
                                        "spec.reason",
                                        "status.phase",
                                        "status.observedGeneration",
                                        "status.observedDesired",
                                        "status.appliedCPULimit",
                                        "status.reason",
                                        "status.original",
                                        "status.lastAppliedTime",
                                        "status.lastAttemptTime",
                                        "status.bounds.managed",
                                        "status.bounds.floor",
                                        "status.bounds.ceiling",
                                        "status.bounds.start",
                                        "status.bounds.weight",
                                        "status.bounds.reason",
                                        "status.conditions"};
// What each policy is there for, in the words of what may happen without it.
constexpr std::pair<std::string_view, const char*> kWithout[] = {
    {"mbcas-allocation-namespace", "an allocation can refer to a namespace other than its own"},
    {"mbcas-agent-exec",
     "an account that may exec in mbcas-system can run any program with an agent's rights"},
    {"mbcas-agent-lease",
     "an agent that was taken over can renew the Leases of other agents and of the controller"},
    {"mbcas-agent-writes", "an agent that was taken over can write the allocations of every node"},
    {"mbcas-controller-writes",
     "a controller that was taken over can change all that its role allows, memory included"},
    {"mbcas-original-resources",
     "an account that may patch pods can change what MBCAS restores to them, within their bounds"}};
constexpr std::string_view kComponent = "app.kubernetes.io/component";
constexpr Nanos kClockDifference = std::chrono::seconds(15);  // that nothing is made of
constexpr Nanos kLong = std::chrono::seconds(60);  // within which everything is usually seen
constexpr int kOldestMinor = 33;
constexpr std::string_view kNoSuchPod = "there is no pod ";  // as the controller begins its reason

// ---- reading

void collectFields(JsonCursor schema, const std::string& prefix, std::vector<std::string>& fields) {
  schema.members([&](std::string_view key, JsonCursor value) {
    if (key != "properties") return;
    value.members([&](std::string_view name, JsonCursor child) {
      const std::string path =
          prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name);
      fields.push_back(path);
      collectFields(child, path, fields);
    });
  });
}

void readVersion(JsonCursor version, Definition& definition) {
  std::string name;
  bool served = false;
  std::vector<std::string> fields;
  version.members([&](std::string_view key, JsonCursor value) {
    if (key == "name") name = value.text();
    if (key == "served") served = value.boolean();
    if (key != "schema") return;
    value.members([&](std::string_view part, JsonCursor schema) {
      if (part == "openAPIV3Schema") collectFields(schema, "", fields);
    });
  });
  if (name == kVersion) definition.fields = std::move(fields);
  if (served) definition.served.push_back(std::move(name));
}

void readConditions(JsonCursor conditions, Definition& definition) {
  conditions.elements([&](JsonCursor condition) {
    bool is_established = false;
    bool holds = false;
    condition.members([&](std::string_view key, JsonCursor value) {
      if (key == "type") is_established = value.text() == "Established";
      if (key == "status") holds = value.text() == "True";
    });
    if (is_established) definition.established = holds;
  });
}

struct PriorityClassObject : kube::Object {
  using Object::Object;
  std::int64_t value = 0;
  static const kube::Kind& kind() {
    static const kube::Kind kKind = kube::makeKind<PriorityClassObject>(
        {.group = "scheduling.k8s.io",
         .version = "v1",
         .plural = "priorityclasses",
         .name = "PriorityClass",
         .namespaced = false},
        [](PriorityClassObject& object, std::string_view key, JsonCursor value) {
          if (key == "value") object.value = value.integer();
        });
    return kKind;
  }
};

struct Need {
  kube::AccessQuestion question;
  const char* needed_by;
};

std::vector<Need> neededByCommands(const std::string& name_space, const std::string& system) {
  const std::string allocations = "allocation.mbcas.io";
  return {{{"list", "", "pods", "", name_space}, "every command"},
          {{"list", allocations, "podallocations", "", name_space}, "mbcas top, explain, pods"},
          {{"get", "", "pods", "proxy", system}, "mbcas top and explain, for what agents see"},
          {{"get", "", "pods", "log", system}, "mbcas explain, for the decision log"},
          {{"get", "", "nodes", "proxy", ""}, "mbcas pods usage"},
          {{"patch", "", "pods", "resize", name_space}, "mbcas resize, restore"},
          {{"patch", "", "pods", "", name_space}, "mbcas restore"},
          {{"restore", allocations, "podallocations", "", name_space}, "mbcas restore"},
          {{"patch", "", "configmaps", "", system}, "mbcas pause, resume"}};
}

class Examiner {
 public:
  Examiner(kube::Client& client, const std::string& system) : client_(client) {
    facts_.system_namespace = system;
    facts_.server = client.config().server;
    facts_.now = client.clock().wall();
  }

  Result<ClusterFacts> run(const Selection& selection) {
    auto version = client_.version();
    if (!version) {
      return failure(
          fmt::format("{} does not answer: {}", facts_.server, version.error().describe()));
    }
    facts_.version = *std::move(version);
    if (const auto resources = client_.resources("v1"); take(resources, "the API")) {
      facts_.serves_resize = std::ranges::find(*resources, "pods/resize") != resources->end();
    }
    readDefinition();
    readAdmission();
    readPriorityClasses();
    readSystem();
    readSettings();
    readAccess(selection.name_space);
    if (lost_) return failure(fmt::format("{} no longer answers: {}", facts_.server, *lost_));
    auto snapshot = takeSnapshot(client_, selection, facts_.system_namespace);
    if (!snapshot)
      return failure(fmt::format("pods cannot be read: {}", snapshot.error().describe()));
    facts_.snapshot = *std::move(snapshot);
    for (const std::string& note : facts_.snapshot.notes) {
      if (std::ranges::find(facts_.notes, note) == facts_.notes.end()) facts_.notes.push_back(note);
    }
    return std::move(facts_);
  }

 private:
  template <class T>
  bool take(const kube::ApiResult<T>& result, std::string_view what) {
    return cli::take(result, what, lost_, facts_.notes);
  }

  void readDefinition() {
    if (lost_) return;
    auto text = client_.perform(
        {.path = fmt::format("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
                             kDefinition)});
    if (!text && text.error().notFound()) return;
    if (text) {
      if (Result<Definition> definition = parseDefinition(*std::move(text))) {
        facts_.definition = *std::move(definition);
        return;
      }
    }
    // Who may not read definitions may still see that it is served.
    const auto resources = client_.resources(fmt::format("allocation.mbcas.io/{}", kVersion));
    if (resources && std::ranges::find(*resources, "podallocations") != resources->end()) {
      facts_.definition = {.established = true, .served = {kVersion}, .fields = {}};
    }
  }

  void readAdmission() {
    AdmissionObjects objects;
    for (auto& [plural, into] :
         {std::pair("validatingadmissionpolicies", &objects.policies),
          std::pair("validatingadmissionpolicybindings", &objects.bindings)}) {
      if (lost_) return;
      auto text = client_.perform(
          {.path = fmt::format("/apis/admissionregistration.k8s.io/v1/{}", plural)});
      if (!take(text, "admission policies")) return;
      Result<std::vector<AdmissionObject>> parsed = parseAdmissionList(*std::move(text));
      if (!parsed) {
        facts_.notes.push_back("admission policies cannot be read: " + parsed.error().message());
        return;
      }
      *into = *std::move(parsed);
    }
    facts_.admission = std::move(objects);
  }

  void readPriorityClasses() {
    if (lost_) return;
    const auto classes = client_.list<PriorityClassObject>();
    if (!take(classes, "priority classes")) return;
    for (const auto& object : classes->items) {
      facts_.priority_classes.push_back({object->meta.name.string(), object->value});
    }
  }

  void readSystem() {
    if (lost_) return;
    if (auto leases = client_.list<kube::Lease>({.name_space = facts_.system_namespace});
        take(leases, "Leases")) {
      facts_.leases = std::move(leases->items);
    }
    if (lost_) return;
    if (auto pods = client_.list<kube::Pod>({.name_space = facts_.system_namespace});
        take(pods, "pods of " + facts_.system_namespace)) {
      facts_.system_pods = std::move(pods->items);
    }
  }

  void readSettings() {
    if (lost_) return;
    const auto map =
        client_.get<kube::ConfigMap>(facts_.system_namespace, controller::kSettingsName);
    if (!map && map.error().notFound()) return;
    if (!take(map, "the settings")) return;
    for (const kube::KeyValue& entry : (*map)->data) {
      facts_.settings[entry.key.string()] = entry.value.string();
    }
  }

  void readAccess(const std::string& name_space) {
    for (const Need& need : neededByCommands(name_space, facts_.system_namespace)) {
      if (lost_) return;
      const auto answer = client_.mayI(need.question);
      if (!take(answer, "permissions")) return;
      facts_.mine.push_back({controller::describe(need.question), need.needed_by, answer->allowed});
    }
    facts_.controllers =
        askAs("mbcas-controller", controller::neededAccess(facts_.system_namespace, false));
    facts_.agents = askAs("mbcas-agent", agent::neededPermissions(facts_.system_namespace, false));
  }

  // What that service account may do, by speaking for it.
  std::optional<std::vector<Access>> askAs(const std::string& account,
                                           const std::vector<kube::AccessQuestion>& questions) {
    if (lost_) return std::nullopt;
    kube::ClientConfig config = client_.config();
    config.impersonate = {
        .user = fmt::format("system:serviceaccount:{}:{}", facts_.system_namespace, account),
        .groups = {"system:serviceaccounts", "system:serviceaccounts:" + facts_.system_namespace,
                   "system:authenticated"}};
    kube::Client other(
        client_.loop(), config, client_.clock(),
        {.user_agent = "mbcas", .max_retries = 3, .timeout = std::chrono::seconds(10)});
    std::vector<Access> answers;
    for (const kube::AccessQuestion& question : questions) {
      const auto answer = other.mayI(question);
      if (!answer) {
        take(answer, fmt::format("what account {} may do", account));
        return std::nullopt;
      }
      answers.push_back({controller::describe(question), account, answer->allowed});
    }
    return answers;
  }

  kube::Client& client_;
  ClusterFacts facts_;
  std::optional<std::string> lost_;
};

// ---- meaning

class Diagnosis {
 public:
  explicit Diagnosis(const ClusterFacts& facts) : facts_(facts) {}

  Findings run() {
    server();
    nodes();
    const bool installed = definition();
    admission();
    settings();
    permissions("you", facts_.mine);
    if (installed) {
      if (facts_.controllers) permissions("controller", *facts_.controllers);
      if (facts_.agents) permissions("agents", *facts_.agents);
      leader();
      agents();
      unready();
      following();
      allocations();
    }
    priorities();
    autoscalers();
    pods();
    passedOver();
    for (const std::string& note : facts_.notes) say(Level::kNote, "not checked", note);
    return std::move(findings_);
  }

 private:
  void say(Level level, std::string area, std::string what, std::string remedy = "") {
    findings_.push_back({level, std::move(area), std::move(what), std::move(remedy)});
  }

  void server() {
    if (facts_.serves_resize) {
      say(Level::kGood, "server",
          fmt::format("{}, Kubernetes {}, serves pods/resize", facts_.server,
                      facts_.version.git_version));
    } else {
      say(Level::kProblem, "server",
          fmt::format("{}, Kubernetes {}, does not serve pods/resize", facts_.server,
                      facts_.version.git_version),
          "Kubernetes 1.33 or later, or 1.32 with the feature gate InPlacePodVerticalScaling; on "
          "1.33 and 1.34 that gate may have been turned off");
    }
  }

  void nodes() {
    std::vector<std::string> old;
    for (const auto& [name, node] : facts_.snapshot.nodes) {
      const std::optional<int> minor = minorOf(node->kubelet_version);
      if (minor && *minor < kOldestMinor) {
        old.push_back(fmt::format("{} ({})", name, node->kubelet_version.view()));
      }
    }
    if (!old.empty()) {
      say(Level::kProblem, "nodes",
          fmt::format("kubelets that cannot resize in place: {}", namesText(old)),
          "update them to 1.33 or later");
    }
  }

  bool definition() {
    if (!facts_.definition) {
      say(Level::kProblem, "definition", "PodAllocation is not installed, so MBCAS is not either",
          "install MBCAS: kubectl apply -k config, or the chart");
      return false;
    }
    const Definition& definition = *facts_.definition;
    if (std::ranges::find(definition.served, kVersion) == definition.served.end() ||
        !definition.established) {
      say(Level::kProblem, "definition",
          fmt::format("PodAllocation is installed, but {} is not served", kVersion),
          "kubectl apply -k config/crd, and check its conditions: kubectl describe crd " +
              std::string(kDefinition));
      return true;
    }
    std::vector<std::string> missing;
    if (!definition.fields.empty()) {
      for (const std::string_view field : kFields) {
        if (std::ranges::find(definition.fields, field) == definition.fields.end()) {
          missing.emplace_back(field);
        }
      }
    }
    if (missing.empty()) {
      say(Level::kGood, "definition",
          fmt::format("PodAllocation {}", fmt::join(definition.served, ", ")));
    } else {
      say(Level::kProblem, "definition",
          fmt::format("PodAllocation is of another version: it lacks {}", namesText(missing)),
          "kubectl apply -k config/crd of this version");
    }
    return true;
  }

  void admission() {
    if (!facts_.definition) return;
    if (!facts_.admission) return;
    const AdmissionObjects shipped = installedAdmission(facts_.system_namespace);
    bool all = true;
    for (const auto& [name, without] : kWithout) {
      const std::string wrong = wrongWith(name, shipped);
      if (wrong.empty()) continue;
      all = false;
      say(Level::kNote, "policies", fmt::format("{} {}. Without it, {}", name, wrong, without),
          "kubectl apply -k config/policy, or the chart again");
    }
    if (all) {
      say(Level::kGood, "policies",
          "agents write for their own node only, the controller only CPU, tenants nothing that "
          "MBCAS relies on");
    }
  }

  // What is wrong with a policy and its binding; empty: nothing.
  std::string wrongWith(std::string_view name, const AdmissionObjects& shipped) const {
    const auto find = [&](const std::vector<AdmissionObject>& objects) {
      const auto found = std::ranges::find(objects, name, &AdmissionObject::name);
      return found == objects.end() ? nullptr : &*found;
    };
    const AdmissionObject* const policy = find(facts_.admission->policies);
    const AdmissionObject* const binding = find(facts_.admission->bindings);
    if (policy == nullptr) return "is missing";
    if (binding == nullptr) return "has no binding and is not enforced";
    std::vector<std::string> fields = differences(*policy, *find(shipped.policies));
    for (std::string& field : differences(*binding, *find(shipped.bindings))) {
      fields.push_back(std::move(field));
    }
    if (fields.empty()) return "";
    return fmt::format("is not as this version has it ({})", namesText(fields));
  }

  // Any tenant may name any class, unless a quota of the namespace counts pods by class.
  void priorities() {
    std::vector<std::string> open;        // classes, with what they give
    std::vector<std::string> namespaces;  // where nothing restricts some of them
    for (const PriorityClass& each : facts_.priority_classes) {
      const double factor = control::priorityFactor(each.value);
      if (factor <= 1) continue;
      bool anywhere = false;
      for (const auto& [name, objects] : facts_.snapshot.namespaces) {
        if (!objects.name_space || isExcluded(name) || restricts(objects.quotas, each.name))
          continue;
        anywhere = true;
        if (std::ranges::find(namespaces, name) == namespaces.end()) namespaces.push_back(name);
      }
      if (anywhere) open.push_back(fmt::format("{} ({:.3g} times)", each.name, factor));
    }
    if (open.empty() || unread(kube::ResourceQuota::kind().plural)) return;
    say(Level::kNote, "priorities",
        fmt::format("every pod of {} may name a PriorityClass that gives it more weight: {}. No "
                    "ResourceQuota there restricts it",
                    namesText(namespaces), namesText(open)),
        "a ResourceQuota with a scopeSelector on PriorityClass in each namespace: docs/security.md "
        "has one");
  }

  bool isExcluded(std::string_view name_space) const {
    const std::vector<std::string>& names = facts_.snapshot.settings.excluded_namespaces;
    return std::ranges::find(names, name_space) != names.end();
  }

  // Whether some quota counts pods of that class.
  static bool restricts(const std::vector<std::shared_ptr<const kube::ResourceQuota>>& quotas,
                        std::string_view priority_class) {
    return std::ranges::any_of(quotas, [&](const auto& quota) {
      return std::ranges::any_of(quota->scope_selector, [&](const auto& expression) {
        if (expression.scope != "PriorityClass") return false;
        const bool named = std::ranges::any_of(
            expression.values, [&](const kube::Str& value) { return value == priority_class; });
        return expression.op == "In"      ? named
               : expression.op == "NotIn" ? !named
                                          : expression.op == "Exists";
      });
    });
  }

  bool unread(std::string_view what) const {
    return std::ranges::any_of(facts_.notes,
                               [&](const std::string& note) { return note.starts_with(what); });
  }

  void settings() {
    const std::string where =
        fmt::format("ConfigMap {}/{}", facts_.system_namespace, controller::kSettingsName);
    const Result<policy::ParsedSettings> parsed = policy::parseSettings(facts_.settings);
    if (!parsed) {
      say(Level::kProblem, "settings", fmt::format("{}: {}", where, parsed.error().message()),
          "correct it; until then the last good settings hold");
      return;
    }
    if (!parsed->unknown.empty()) {
      say(Level::kProblem, "settings",
          fmt::format("{}: unknown {} {}", where,
                      parsed->unknown.size() == 1 ? "setting" : "settings",
                      namesText(parsed->unknown)),
          "correct or remove it: mbcas-controller --help lists the settings");
    }
    if (parsed->settings.paused) {
      say(Level::kNote, "settings", "paused: every pod has what it declared", "mbcas resume");
    } else if (parsed->settings.mode != policy::Mode::kFull) {
      say(Level::kNote, "settings", fmt::format("mode {}", name(parsed->settings.mode)),
          "mbcas help modes");
    }
    for (const auto& [key, objects] : facts_.snapshot.namespaces) {
      if (!objects.name_space) continue;
      const auto own = kube::find(objects.name_space->meta.labels, "mbcas.io/mode");
      if (own && !policy::parseMode(*own)) {
        say(Level::kProblem, "settings",
            fmt::format("namespace {}: mbcas.io/mode={} is not a mode, and counts as off", key,
                        *own),
            "one of off, recommend, raise-only, full");
      }
    }
  }

  void permissions(const std::string& who, const std::vector<Access>& answers) {
    std::vector<std::string> missing;
    for (const Access& access : answers) {
      if (access.allowed) continue;
      missing.push_back(who == "you" ? fmt::format("{} ({})", access.what, access.needed_by)
                                     : access.what);
    }
    if (answers.empty()) return;
    if (who == "you") {
      if (missing.empty()) {
        say(Level::kGood, "permissions", "you may do what the commands need");
      } else {
        say(Level::kNote, "permissions", fmt::format("you may not {}", fmt::join(missing, ", ")),
            "ask for a role with these permissions");
      }
    } else if (missing.empty()) {
      say(Level::kGood, "permissions", fmt::format("the {} may do what is needed", account(who)));
    } else {
      say(Level::kProblem, "permissions",
          fmt::format("the {} may not {}", account(who), namesText(missing, 5)),
          "install its roles again: kubectl apply -k config, or the chart");
    }
  }

  std::string account(const std::string& who) const {
    return who == "agents" ? "agents' account" : "controller's account";
  }

  const kube::Lease* lease(std::string_view name) const {
    for (const auto& lease : facts_.leases) {
      if (lease->meta.name == name) return lease.get();
    }
    return nullptr;
  }
  const kube::Pod* systemPod(std::string_view component, std::string_view node = {}) const {
    for (const PodPtr& pod : facts_.system_pods) {
      if (kube::find(pod->meta.labels, kComponent) != component) continue;
      if (node.empty() || pod->node == node) return pod.get();
    }
    return nullptr;
  }
  std::string lookAt(const kube::Pod* pod, const std::string& otherwise) const {
    if (pod == nullptr) return otherwise;
    return fmt::format("kubectl -n {} logs {}", facts_.system_namespace, pod->meta.name.view());
  }

  void leader() {
    if (unread("Leases")) return;
    const kube::Lease* const found = lease(controller::kLeaderLease);
    const std::string remedy =
        lookAt(systemPod("controller"),
               fmt::format("kubectl -n {} get deployments,pods", facts_.system_namespace));
    if (found == nullptr || found->holder.empty()) {
      say(Level::kProblem, "controller", "no controller leads", remedy);
      return;
    }
    const Nanos age = facts_.now - found->renewed;
    if (age > std::chrono::seconds(found->duration_seconds) + kClockDifference) {
      say(Level::kProblem, "controller",
          fmt::format("{} led, and has been silent for {}", found->holder.view(), ageText(age)),
          remedy);
    } else {
      say(Level::kGood, "controller", fmt::format("{} leads", found->holder.view()));
    }
  }

  void agents() {
    if (unread("Leases")) return;
    std::vector<std::string> missing;
    std::vector<std::string> silent;
    const kube::Pod* of_missing = nullptr;
    const kube::Pod* of_silent = nullptr;
    std::size_t alive = 0;
    for (const auto& [name, node] : facts_.snapshot.nodes) {
      if (!node->operating_system.empty() && node->operating_system != "linux") continue;
      const kube::Lease* const found = lease(std::string(controller::kAgentLease) + name);
      if (found == nullptr) {
        missing.push_back(name);
        if (of_missing == nullptr) of_missing = systemPod("agent", name);
        continue;
      }
      const Nanos age = facts_.now - found->renewed;
      if (age > facts_.snapshot.settings.silence + kClockDifference) {
        silent.push_back(fmt::format("{} ({})", name, ageText(age)));
        if (of_silent == nullptr) of_silent = systemPod("agent", name);
      } else {
        ++alive;
      }
    }
    if (alive > 0) {
      say(Level::kGood, "agents", fmt::format("alive on {}", countText(alive, "node")));
    }
    const std::string look =
        fmt::format("kubectl -n {} get daemonsets,pods -o wide", facts_.system_namespace);
    if (!missing.empty()) {
      say(Level::kProblem, "agents",
          fmt::format("no agent has reported from {}", namesText(missing)),
          lookAt(of_missing, look + "; tolerations may keep it from a node"));
    }
    if (!silent.empty()) {
      say(Level::kProblem, "agents",
          fmt::format("silent: {}. Their pods get back what they declared", namesText(silent)),
          lookAt(of_silent, look));
    }
  }

  bool old(WallTime created) const {
    return created != WallTime{} && facts_.now - created > kLong + kClockDifference;
  }

  // Probes fail while a controller or an agent does not hear from the API server.
  void unready() {
    for (const PodPtr& pod : facts_.system_pods) {
      const auto component = kube::find(pod->meta.labels, kComponent);
      if (component != "controller" && component != "agent") continue;
      if (pod->ready || pod->terminal() || pod->meta.beingDeleted() || !old(pod->meta.created)) {
        continue;
      }
      say(Level::kProblem, component == "agent" ? "agents" : "controller",
          fmt::format("{} is not Ready", pod->meta.name.view()), lookAt(pod.get(), ""));
    }
  }

  // Whether the controller sees what there is: a watch that is stuck goes by no error.
  void following() {
    std::vector<std::string> unseen;
    std::vector<std::string> denied;
    for (const PodPtr& pod : facts_.snapshot.pods) {
      const podallocation::PodAllocation* const allocation = facts_.snapshot.allocationOf(*pod);
      if (allocation == nullptr || !old(pod->meta.created) || !old(allocation->meta.created)) {
        continue;
      }
      if (allocation->phase == podallocation::Phase::kUnset && allocation->bounds() == nullptr) {
        unseen.push_back(kube::objectKey(pod->meta));
      } else if (allocation->phase == podallocation::Phase::kFailed &&
                 allocation->status_reason.view().starts_with(kNoSuchPod)) {
        denied.push_back(kube::objectKey(pod->meta));
      }
    }
    const std::string remedy = fmt::format(
        "kubectl -n {} rollout restart deployment/mbcas-controller, and please report "
        "its log from before",
        facts_.system_namespace);
    if (!unseen.empty()) {
      say(Level::kProblem, "controller",
          fmt::format("it has not reconciled allocations for more than {}: its watch of "
                      "podallocations may be stuck ({})",
                      ageText(kLong), namesText(unseen)),
          remedy);
    }
    if (!denied.empty()) {
      say(Level::kProblem, "controller",
          fmt::format("it does not know existing pods: its watch of pods may be stuck, or "
                      "they cannot be read ({})",
                      namesText(denied)),
          remedy);
    }
  }

  void allocations() {
    std::size_t failed = 0;
    for (const auto& [uid, allocation] : facts_.snapshot.allocations) {
      if (allocation->phase != podallocation::Phase::kFailed) continue;
      const std::string pod =
          fmt::format("{}/{}", allocation->meta.namespace_.view(), allocation->pod_name.view());
      if (++failed <= 5) {
        say(Level::kProblem, "allocations",
            fmt::format("{}: {}", pod, allocation->status_reason.view()), "mbcas explain " + pod);
      }
    }
    if (failed > 5) {
      say(Level::kProblem, "allocations", fmt::format("{} more have failed", failed - 5),
          "kubectl get podallocations -A");
    }
  }

  void autoscalers() {
    for (const auto& [name_space, objects] : facts_.snapshot.namespaces) {
      for (const auto& vpa : objects.vpas) {
        if (!vpa->activeOnCpu("*")) continue;
        say(Level::kNote, "autoscalers",
            fmt::format(
                "VerticalPodAutoscaler {}/{} changes the CPU of {} {}: MBCAS leaves its pods "
                "alone",
                name_space, vpa->meta.name.view(), vpa->target.kind.view(),
                vpa->target.name.view()),
            "set its updateMode to Off, or its controlledResources to [memory], to let MBCAS "
            "manage them");
      }
    }
  }

  // Agents and controller cannot read them either, and count them as not there.
  void passedOver() {
    constexpr std::size_t kMost = 10;
    const std::vector<Snapshot::PassedOver>& all = facts_.snapshot.passed_over;
    for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) {
      say(Level::kProblem, "unreadable",
          fmt::format("{} is passed over, as if it did not exist: {}", all[i].object, all[i].why),
          "correct what it says there, or delete it");
    }
    if (all.size() > kMost) {
      say(Level::kProblem, "unreadable",
          fmt::format("{} more are passed over", countText(all.size() - kMost, "object")));
    }
  }

  void pods() {
    struct Group {
      std::string reason;
      std::vector<std::string> pods;
    };
    std::map<std::string, Group> groups;  // by what could be done
    std::size_t managed = 0;
    std::vector<std::string> expected;
    std::size_t excluded = 0;
    std::size_t other = 0;
    for (const PodPtr& pod : facts_.snapshot.pods) {
      if (isExcluded(pod->meta.namespace_.view())) {
        ++excluded;
        continue;
      }
      const Verdict verdict = judge(facts_.snapshot, *pod);
      const std::string key = kube::objectKey(pod->meta);
      if (verdict.managed) {
        ++managed;
      } else if (verdict.expected) {
        expected.push_back(key);
      } else if (pod->terminal() || pod->meta.beingDeleted() || verdict.remedy.empty()) {
        ++other;
      } else {
        Group& group = groups[verdict.remedy];
        if (group.pods.empty()) group.reason = verdict.reason;
        group.pods.push_back(key);
      }
    }
    std::string what = fmt::format("{} managed", countText(managed, "pod"));
    if (excluded > 0) what += fmt::format(", {} in excluded namespaces", excluded);
    if (other > 0) what += fmt::format(", {} finished, static or otherwise out of reach", other);
    say(Level::kGood, "pods", what);
    if (!expected.empty() && facts_.definition) {
      say(Level::kNote, "pods",
          fmt::format("could be managed, but no agent and controller have agreed on {} yet: {}",
                      expected.size() == 1 ? "it" : "them", namesText(expected)),
          "wait a few seconds; then check the agents above");
    }
    for (const auto& [remedy, group] : groups) {
      say(Level::kNote, "pods",
          fmt::format("{} left alone: {} ({})", countText(group.pods.size(), "pod"), group.reason,
                      namesText(group.pods)),
          remedy);
    }
  }

  const ClusterFacts& facts_;
  Findings findings_;
};

}  // namespace

Result<Definition> parseDefinition(std::string crd) {
  Definition definition;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(crd, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "spec") {
        value.members([&](std::string_view name, JsonCursor versions) {
          if (name != "versions") return;
          versions.elements([&](JsonCursor version) { readVersion(version, definition); });
        });
      }
      if (key == "status") {
        value.members([&](std::string_view name, JsonCursor conditions) {
          if (name == "conditions") readConditions(conditions, definition);
        });
      }
    });
  });
  if (!parsed) return failure(parsed.error());
  return definition;
}

Result<ClusterFacts> examineCluster(kube::Client& client, const Selection& selection,
                                    const std::string& system_namespace) {
  return Examiner(client, system_namespace).run(selection);
}

Findings diagnose(const ClusterFacts& facts) {
  return Diagnosis(facts).run();
}

}  // namespace mbcas::cli
