#include "mbcas/cli/install_checkup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "mbcas/agent/requests.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/cli/questions.h"
#include "mbcas/cli/words.h"
#include "mbcas/controller/cluster.h"
#include "mbcas/controller/startup.h"

namespace mbcas::cli {
namespace {

using Level = Finding::Level;
using kube::JsonCursor;

constexpr int kOldestMinor = 33;
constexpr const char* kNodeClass = "system-node-critical";
constexpr const char* kClusterClass = "system-cluster-critical";
constexpr std::string_view kNoQuota = "insufficient quota to match these scopes";
constexpr std::string_view kPodSecurity = "violates PodSecurity";

// Of a node only what matters here.
struct NodeObject : kube::Object {
  using Object::Object;
  std::string architecture;
  std::string operating_system;
  std::string kubelet_version;
  static const kube::Kind& kind() {
    static const kube::Kind kKind = kube::makeKind<NodeObject>(
        {.group = "", .version = "v1", .plural = "nodes", .name = "Node", .namespaced = false},
        [](NodeObject& node, std::string_view key, JsonCursor status) {
          if (key != "status") return;
          status.members([&](std::string_view part, JsonCursor info) {
            if (part != "nodeInfo") return;
            info.members([&](std::string_view name, JsonCursor value) {
              if (name == "architecture") node.architecture = value.text();
              if (name == "operatingSystem") node.operating_system = value.text();
              if (name == "kubeletVersion") node.kubelet_version = value.text();
            });
          });
        });
    return kKind;
  }
};

// One of each kind in config/.
std::vector<kube::AccessQuestion> created(const std::string& system) {
  std::vector<kube::AccessQuestion> questions;
  for (const auto& [group, resource] :
       {std::pair("", "namespaces"), std::pair("apiextensions.k8s.io", "customresourcedefinitions"),
        std::pair("rbac.authorization.k8s.io", "clusterroles"),
        std::pair("rbac.authorization.k8s.io", "clusterrolebindings"),
        std::pair("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        std::pair("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
        std::pair("flowcontrol.apiserver.k8s.io", "flowschemas"),
        std::pair("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")}) {
    questions.push_back({"create", group, resource, "", ""});
  }
  for (const auto& [group, resource] :
       {std::pair("", "serviceaccounts"), std::pair("rbac.authorization.k8s.io", "roles"),
        std::pair("rbac.authorization.k8s.io", "rolebindings"), std::pair("apps", "deployments"),
        std::pair("apps", "daemonsets"), std::pair("policy", "poddisruptionbudgets"),
        std::pair("networking.k8s.io", "networkpolicies")}) {
    questions.push_back({"create", group, resource, "", system});
  }
  return questions;
}

// A pod like an agent, or like the controller: the one takes a folder of the host.
std::string podBody(const std::string& priority_class, bool host_path) {
  std::string body;
  JsonWriter json(body);
  json.beginObject().key("apiVersion").value("v1").key("kind").value("Pod");
  json.key("metadata").beginObject().key("generateName").value("mbcas-doctor-").endObject();
  json.key("spec").beginObject().key("priorityClassName").value(priority_class);
  json.key("automountServiceAccountToken").value(false);
  json.key("securityContext").beginObject().key("runAsNonRoot").value(true);
  json.key("runAsUser").value(65532).key("seccompProfile").beginObject();
  json.key("type").value("RuntimeDefault").endObject().endObject();
  json.key("containers").beginArray().beginObject().key("name").value("main");
  json.key("image").value("mbcas-agent");
  json.key("resources").beginObject().key("requests").beginObject();
  json.key("cpu").value("10m").key("memory").value("16Mi").endObject();
  json.key("limits").beginObject().key("cpu").value("1").key("memory").value("64Mi").endObject();
  json.endObject();
  json.key("securityContext").beginObject().key("allowPrivilegeEscalation").value(false);
  json.key("readOnlyRootFilesystem").value(true).key("capabilities").beginObject();
  json.key("drop").beginArray().value("ALL").endArray().endObject().endObject();
  json.endObject().endArray();
  if (host_path) {
    json.key("volumes").beginArray().beginObject().key("name").value("cgroup");
    json.key("hostPath").beginObject().key("path").value("/sys/fs/cgroup").endObject();
    json.endObject().endArray();
  }
  json.endObject().endObject();
  return body;
}

class Examiner {
 public:
  Examiner(kube::Client& client, const std::string& system, std::vector<std::string> images)
      : client_(client) {
    facts_.system_namespace = system;
    facts_.server = client.config().server;
    facts_.images = std::move(images);
  }

  Result<InstallFacts> run() {
    auto version = client_.version();
    if (!version) {
      return failure(
          fmt::format("{} does not answer: {}", facts_.server, version.error().describe()));
    }
    facts_.version = *std::move(version);
    if (const auto resources = client_.resources("v1"); take(resources, "the API")) {
      facts_.serves_resize = std::ranges::find(*resources, "pods/resize") != resources->end();
    }
    facts_.serves_policies =
        serves("admissionregistration.k8s.io/v1", "validatingadmissionpolicies");
    facts_.installed = serves("allocation.mbcas.io/v1alpha1", "podallocations");
    readNamespace();
    readNodes();
    readAccess();
    tryPods();
    if (lost_) return failure(fmt::format("{} no longer answers: {}", facts_.server, *lost_));
    return std::move(facts_);
  }

 private:
  template <class T>
  bool take(const kube::ApiResult<T>& result, std::string_view what) {
    return cli::take(result, what, lost_, facts_.notes);
  }

  bool serves(std::string_view api_version, std::string_view resource) {
    if (lost_) return false;
    const auto resources = client_.resources(api_version);
    return resources && std::ranges::find(*resources, resource) != resources->end();
  }

  void readNamespace() {
    if (lost_) return;
    const auto object = client_.get<kube::Namespace>("", facts_.system_namespace);
    if (!object && object.error().notFound()) return;
    if (!take(object, "namespace " + facts_.system_namespace)) return;
    facts_.namespace_exists = true;
    const auto level = kube::find((*object)->meta.labels, "pod-security.kubernetes.io/enforce");
    if (level) facts_.pod_security = *level;
  }

  void readNodes() {
    if (lost_) return;
    const auto nodes = client_.list<NodeObject>();
    if (!take(nodes, "nodes")) return;
    facts_.nodes.emplace();
    for (const auto& node : nodes->items) {
      facts_.nodes->push_back({node->meta.name.string(), node->architecture, node->operating_system,
                               node->kubelet_version});
    }
  }

  // Nothing if it cannot be asked, which is noted.
  std::optional<bool> mayI(const kube::AccessQuestion& question) {
    if (lost_) return std::nullopt;
    const auto answer = client_.mayI(question);
    if (!take(answer, "permissions")) return std::nullopt;
    return answer->allowed;
  }

  void readAccess() {
    for (const kube::AccessQuestion& question : created(facts_.system_namespace)) {
      const std::optional<bool> allowed = mayI(question);
      if (!allowed) return;
      facts_.to_create.push_back({controller::describe(question), "", *allowed});
    }
    // An account may make a role if it has all that is in it, or may escalate.
    const std::optional<bool> escalates =
        mayI({"escalate", "rbac.authorization.k8s.io", "clusterroles", "", ""});
    if (!escalates || *escalates) return;
    std::vector<kube::AccessQuestion> granted =
        controller::neededAccess(facts_.system_namespace, false);
    for (kube::AccessQuestion& question :
         agent::neededPermissions(facts_.system_namespace, false)) {
      granted.push_back(std::move(question));
    }
    for (const kube::AccessQuestion& question : granted) {
      const std::optional<bool> allowed = mayI(question);
      if (!allowed) return;
      facts_.to_grant.push_back({controller::describe(question), "", *allowed});
    }
  }

  void tryPods() {
    // In a namespace that is not there yet nothing can be tried; what GKE and others demand of
    // critical pods they demand in every namespace but their own.
    const std::string name_space = facts_.namespace_exists ? facts_.system_namespace : "default";
    for (const char* priority_class : {kNodeClass, kClusterClass}) {
      if (lost_) return;
      const bool agent = priority_class == kNodeClass;
      const auto answer = client_.perform(
          {.method = "POST",
           .path = fmt::format("/api/v1/namespaces/{}/pods", kube::percentEncode(name_space)),
           .query = {{"dryRun", "All"}},
           .body = podBody(priority_class, agent && facts_.namespace_exists)});
      if (!answer && !answer.error().answered()) {
        lost_ = answer.error().describe();
        return;
      }
      facts_.trials.push_back({name_space, priority_class, answer.has_value(),
                               answer ? "" : answer.error().describe()});
    }
  }

  kube::Client& client_;
  InstallFacts facts_;
  std::optional<std::string> lost_;
};

class Diagnosis {
 public:
  explicit Diagnosis(const InstallFacts& facts) : facts_(facts) {}

  Findings run() {
    server();
    installed();
    permissions();
    podSecurity();
    criticalPods();
    nodes();
    for (const std::string& note : facts_.notes) say(Level::kNote, "not checked", note);
    return std::move(findings_);
  }

 private:
  void say(Level level, std::string area, std::string what, std::string remedy = "") {
    findings_.push_back({level, std::move(area), std::move(what), std::move(remedy)});
  }

  void server() {
    const std::string what =
        fmt::format("{}, Kubernetes {}", facts_.server, facts_.version.git_version);
    if (facts_.serves_resize) {
      say(Level::kGood, "server", what + ", serves pods/resize");
    } else {
      say(Level::kProblem, "server", what + ", does not serve pods/resize",
          "Kubernetes 1.33 or later, or 1.32 with the feature gate InPlacePodVerticalScaling");
    }
    if (!facts_.serves_policies) {
      say(Level::kNote, "server", "ValidatingAdmissionPolicy is not served",
          "Kubernetes 1.30 or later serves it; without it, agents and controller may write more "
          "than "
          "they need (docs/security.md)");
    }
  }

  void installed() {
    if (!facts_.installed) return;
    say(Level::kNote, "installed", "PodAllocation is served: MBCAS is installed already, or was",
        "mbcas doctor, without --pre, looks at an installation");
  }

  static std::vector<std::string> missing(const std::vector<Access>& answers) {
    std::vector<std::string> missing;
    for (const Access& access : answers) {
      if (!access.allowed) missing.push_back(access.what);
    }
    return missing;
  }

  void permissions() {
    if (facts_.to_create.empty()) return;
    const std::vector<std::string> create = missing(facts_.to_create);
    const std::vector<std::string> grant = missing(facts_.to_grant);
    if (!create.empty()) {
      say(Level::kProblem, "permissions", fmt::format("you may not {}", namesText(create, 5)),
          "a cluster-admin installs MBCAS, or gives you these permissions");
    }
    if (!grant.empty()) {
      say(Level::kProblem, "permissions",
          fmt::format("you may not grant what you do not have: {}", namesText(grant, 5)),
          "a cluster-admin installs MBCAS, or lets you escalate clusterroles");
    }
    if (create.empty() && grant.empty()) {
      say(Level::kGood, "permissions", "you may create all that the manifests contain");
    }
  }

  void podSecurity() {
    const std::string label = fmt::format(
        "kubectl label --overwrite namespace {} "
        "pod-security.kubernetes.io/enforce=privileged",
        facts_.system_namespace);
    const auto refused = std::ranges::find_if(facts_.trials, [](const InstallFacts::Trial& trial) {
      return trial.why.find(kPodSecurity) != std::string::npos;
    });
    if (!facts_.namespace_exists) {
      say(Level::kGood, "pod security",
          fmt::format("namespace {} is not there yet; kubectl apply -k config makes it with the "
                      "level that the agents' hostPath needs",
                      facts_.system_namespace),
          "with helm: kubectl create namespace " + facts_.system_namespace + ", then " + label);
    } else if (facts_.pod_security == "baseline" || facts_.pod_security == "restricted" ||
               refused != facts_.trials.end()) {
      say(Level::kProblem, "pod security",
          fmt::format("namespace {} enforces {}, which refuses the agents' hostPath",
                      facts_.system_namespace,
                      facts_.pod_security.empty() ? "a level of the cluster's own"
                                                  : "level " + facts_.pod_security),
          label);
    } else {
      say(Level::kGood, "pod security",
          fmt::format("namespace {} admits the agents' hostPath", facts_.system_namespace));
    }
  }

  void criticalPods() {
    bool all = !facts_.trials.empty();
    for (const InstallFacts::Trial& trial : facts_.trials) {
      if (trial.admitted || trial.why.find(kPodSecurity) != std::string::npos) continue;
      all = false;
      if (trial.why.find(kNoQuota) != std::string::npos) {
        say(Level::kProblem, "critical pods",
            fmt::format("pods of class {} need a ResourceQuota for that class in namespace {}",
                        trial.priority_class, facts_.system_namespace),
            "chart: --set criticalPodsQuota.enabled=true, or -f "
            "charts/mbcas/platforms/gke.yaml; docs/platforms.md says more");
      } else {
        say(Level::kNote, "critical pods",
            fmt::format("a pod of class {} in namespace {} is refused: {}", trial.priority_class,
                        trial.name_space, trial.why),
            "if it is you who may not, ask whoever installs MBCAS to run this");
      }
    }
    if (all) {
      say(Level::kGood, "critical pods",
          fmt::format("pods of classes {} and {} are admitted", kNodeClass, kClusterClass));
    }
  }

  void nodes() {
    if (!facts_.nodes) return;
    std::vector<std::string> old;
    std::vector<std::string> others;   // architectures
    std::vector<std::string> windows;  // nodes
    std::size_t good = 0;
    for (const InstallFacts::Node& node : *facts_.nodes) {
      if (!node.operating_system.empty() && node.operating_system != "linux") {
        windows.push_back(node.name);
        continue;
      }
      const std::optional<int> minor = minorOf(node.kubelet_version);
      const bool is_old = minor && *minor < kOldestMinor;
      const bool is_other =
          !node.architecture.empty() &&
          std::ranges::find(facts_.images, node.architecture) == facts_.images.end();
      if (is_old) old.push_back(fmt::format("{} ({})", node.name, node.kubelet_version));
      if (is_other) others.push_back(fmt::format("{} ({})", node.name, node.architecture));
      good += is_old || is_other ? 0 : 1;
    }
    if (!old.empty()) {
      say(Level::kProblem, "nodes",
          fmt::format("kubelets that cannot resize in place: {}", namesText(old)),
          "update them to 1.33 or later");
    }
    if (!others.empty()) {
      say(Level::kProblem, "nodes",
          fmt::format("the images are for {}, and these nodes are not: {}",
                      fmt::join(facts_.images, ", "), namesText(others)),
          "images of `make release` have amd64 and arm64: --architectures says what yours have; "
          "or keep the agents away from these nodes (chart: agent.nodeSelector)");
    }
    if (!windows.empty()) {
      say(Level::kNote, "nodes",
          fmt::format("no Linux: {}. They get no agent, and their pods are left alone",
                      namesText(windows)));
    }
    if (good > 0) {
      say(Level::kGood, "nodes",
          fmt::format("{} can resize in place",
                      good == 1 ? "1 node" : fmt::format("{} nodes", good)));
    }
  }

  const InstallFacts& facts_;
  Findings findings_;
};

}  // namespace

Result<InstallFacts> examineBefore(kube::Client& client, const std::string& system_namespace,
                                   std::vector<std::string> images) {
  return Examiner(client, system_namespace, std::move(images)).run();
}

Findings diagnoseBefore(const InstallFacts& facts) {
  return Diagnosis(facts).run();
}

}  // namespace mbcas::cli
