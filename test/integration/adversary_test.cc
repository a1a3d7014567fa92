// An adversary against a real kube-apiserver: a tenant, and an agent's token, that try at random
// whatever they are allowed to do. What must hold meanwhile:
//
//   - The controller goes on: a new desire of an honest pod is in force soon.
//   - An honest pod's bounds, weight and requests are what they were before the adversary came.
//   - MBCAS gives the adversary's own pods no more than it gives an honest pod of equal request and
//     priority: no request but the one it was created with, no limit beyond what its author wrote
//     and policy allows, no weight beyond its request's.
//   - Memory stays within the limit of the controller's Deployment.
//
// Every program of the adversary is made from a seed. One that breaks a rule is shrunk: the fewest
// steps that still break it are in the message. MBCAS_SOAK=1 runs for ten minutes.
#include <fmt/ranges.h>

#include <fstream>
#include <random>

#include "mbcas/agent/member.h"
#include "mbcas/control/weight.h"
#include "test/integration/controller_fixture.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr Millicores kCeiling{8000};      // of a pod on the node of 8 CPUs
constexpr Millicores kAllocatable{8000};  // of that node
constexpr auto kSoon = 60s;               // generous: this machine may be busy

std::size_t residentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

template <std::size_t n>
std::string pick(Random& random, const std::array<const char*, n>& choices) {
  return choices[below(random, n)];
}

// Values that a tenant may try wherever a quantity stands.
constexpr auto kQuantities = std::to_array<const char*>(
    {"0",     "1m",   "10m",  "99m", "100m", "101m",    "1",          "4",    "64",  "0.5",
     "1e3",   "1e30", "1e18", "9E",  "8Ei",  "1048576", "1e-9",       "1n",   "-1",  "-500m",
     "1.5e3", "nan",  "",     " 1",  "1 ",   "100%",    "\\u001b[2J", "0x10", "1_0", "10000"});

constexpr auto kTexts = std::to_array<const char*>(
    {"", "true", "false", "TRUE", "null", "{}", "[]", "rubbish", "\\u001b]0;owned\\u0007",
     "\\u202egnirts", "{\\\"main\\\":{\\\"request\\\":\\\"64\\\",\\\"limit\\\":\\\"64\\\"}}",
     "{\\\"main\\\":{\\\"limit\\\":\\\"1e30\\\"}}", "{\\\"main\\\":{\\\"request\\\":\\\"-1\\\"}}",
     "{\\\"main\\\":{\\\"limit\\\":\\\"10m\\\"},\\\"other\\\":{\\\"limit\\\":\\\"64\\\"}}"});

constexpr auto kKeys = std::to_array<const char*>(
    {"mbcas.io/original-resources", "mbcas.io/managed", "mbcas.io/min-cpu", "mbcas.io/max-cpu",
     "mbcas.io/manage-guaranteed", "mbcas.io/mode", "mbcas.io/node", "mbcas.io/other",
     "kubernetes.io/config.mirror", "kubernetes.io/config.hash"});

class AdversaryTest : public ControllerTest {
 protected:
  // One step of the adversary: what it tries is drawn from the seed.
  using Program = std::vector<std::uint64_t>;

  void SetUp() override {
    ControllerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    kubectl("apply -f config/agent/rbac.yaml");
  }
  void TearDown() override {
    engine.reset();
    for (const std::string& name : namespaces) removeFrom(name);
    ControllerTest::TearDown();
  }

  void removeFrom(const std::string& name) {
    // As text: some of these objects are made so that they cannot be decoded.
    for (const char* path :
         {"/apis/allocation.mbcas.io/v1alpha1/namespaces/{}/podallocations",
          "/api/v1/namespaces/{}/pods", "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
          "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers"}) {
      (void)admin->perform({.method = "DELETE",
                            .path = fmt::format(fmt::runtime(path), name),
                            .query = {{"gracePeriodSeconds", "0"}}});
    }
  }

  std::string makeNamespace(const std::string& role) {
    const std::string name = fmt::format("{}-{}", role, ++counter);
    const auto made = admin->create<kube::Namespace>(
        "", fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})",
                        name));
    EXPECT_TRUE(made) << made.error().describe();
    namespaces.push_back(name);
    return name;
  }

  std::unique_ptr<kube::Client> clientOf(const std::string& user, std::vector<std::string> groups,
                                         const std::string& node = "") {
    kube::ClientConfig other = config;
    other.impersonate.user = user;
    other.impersonate.groups = std::move(groups);
    if (!node.empty()) {
      other.impersonate.extra = {{"authentication.kubernetes.io/node-name", {node}}};
    }
    return std::make_unique<kube::Client>(loop, other, clock,
                                          kube::ClientOptions{.max_retries = 0});
  }
  std::unique_ptr<kube::Client> agentOf(const std::string& node) {
    return clientOf("system:serviceaccount:mbcas-system:mbcas-agent",
                    {"system:authenticated", "system:serviceaccounts"}, node);
  }

  // The rules of the ClusterRole `edit`, which a controller would put together from these.
  void grantEdit(const std::string& name, bool may_resize) {
    for (const char* role : {"system:aggregate-to-edit", "system:aggregate-to-view"}) {
      bind(name, role);
    }
    if (!may_resize) return;
    (void)admin->perform(
        {.method = "POST",
         .path = fmt::format("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", name),
         .body = R"({"metadata":{"name":"resize"},"rules":[{"apiGroups":[""],
                     "resources":["pods/resize"],"verbs":["patch","update"]}]})"});
    bind(name, "resize", "Role");
  }
  void bind(const std::string& name, const std::string& role,
            const std::string& kind = "ClusterRole") {
    const auto bound = admin->perform(
        {.method = "POST",
         .path = fmt::format("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings", name),
         .body = fmt::format(
             R"({{"metadata":{{"generateName":"mallory-"}},"subjects":[{{"kind":"User",
                 "name":"mallory","apiGroup":"rbac.authorization.k8s.io"}}],"roleRef":{{
                 "apiGroup":"rbac.authorization.k8s.io","kind":"{}","name":"{}"}}}})",
             kind, role)});
    EXPECT_TRUE(bound) << bound.error().describe();
  }

  // ---- The honest neighbour

  struct Honest {
    std::string name_space;
    std::vector<std::shared_ptr<const Pod>> pods;
    std::vector<podallocation::Bounds> bounds;
    std::vector<Millicores> requests;
  };

  // Desires on behalf of the agent of the pod's node, which tries again as agents do.
  bool desireAsAgent(kube::Client& agent, const Pod& pod, Millicores cpu) {
    const podallocation::Spec spec{.name_space = pod.meta.namespace_.string(),
                                   .pod_name = pod.meta.name.string(),
                                   .node = pod.node.string(),
                                   .desired = cpu,
                                   .containers = {},
                                   .wanted = cpu,
                                   .reason = "a test wants it"};
    return agent
        .apply<PodAllocation>(pod.meta.namespace_, pod.meta.uid,
                              podallocation::applySpec({pod.meta.name, pod.meta.uid}, spec),
                              {.field_manager = podallocation::kAgentManager, .force = true})
        .has_value();
  }
  std::shared_ptr<const PodAllocation> allocationFor(const Pod& pod) {
    const auto found = admin->get<PodAllocation>(pod.meta.namespace_, pod.meta.uid);
    return found ? *found : nullptr;
  }

  std::shared_ptr<const Pod> runningPod(const std::string& name_space, const std::string& name,
                                        const std::string& request, const std::string& limit) {
    const auto made = admin->create<Pod>(
        name_space, podBody(name, request, limit, fmt::format(R"("nodeName":"{}",)", kNode)));
    EXPECT_TRUE(made) << (made ? "" : made.error().describe());
    if (!made) return nullptr;
    EXPECT_TRUE(eventually([&] {
      const auto now = admin->get<Pod>(name_space, name);
      return now && (*now)->phase == kube::PodPhase::kRunning;
    })) << kubelet->trouble();
    return *made;
  }

  Honest settleHonest() {
    Honest honest{.name_space = makeNamespace("honest"), .pods = {}, .bounds = {}, .requests = {}};
    for (const char* request : {"100m", "250m", "400m"}) {
      const auto pod =
          runningPod(honest.name_space, fmt::format("h{}", honest.pods.size()), request, "800m");
      if (!pod) return honest;
      EXPECT_TRUE(desireAsAgent(*admin, *pod, 800_m));
      EXPECT_TRUE(eventually([&] {
        const auto now = allocationFor(*pod);
        return now && now->phase == Phase::kApplied && now->bounds() != nullptr;
      }));
      honest.pods.push_back(pod);
      honest.bounds.push_back(*allocationFor(*pod)->statusValue().bounds);
      honest.requests.push_back(*pod->container("main")->requests.cpu());
    }
    return honest;
  }

  // Why an honest pod is worse off, or the controller at a standstill.
  std::optional<std::string> checkHonest(const Honest& honest, kube::Client& agent,
                                         Random& random) {
    const std::size_t chosen = below(random, honest.pods.size());
    const Pod& pod = *honest.pods[chosen];
    const auto before = allocationFor(pod);
    // Only ever up, or within a step down: so it is in force at once.
    const Millicores last = before ? before->applied.value_or(800_m) : 800_m;
    const Millicores next = last >= 3000_m ? last - 100_m : last + 100_m;
    const auto begin = std::chrono::steady_clock::now();
    bool desired = false;
    const bool applied = eventually(
        [&] {
          desired = desired || desireAsAgent(agent, pod, next);
          const auto now = allocationFor(pod);
          return now && now->phase == Phase::kApplied && now->applied == next;
        },
        kSoon);
    const auto took = std::chrono::steady_clock::now() - begin;
    slowest = std::max(slowest, std::chrono::duration_cast<std::chrono::milliseconds>(took));
    if (!applied) {
      return fmt::format(
          "honest pod {} has not got {}m within {} s (desired: {}): {}", pod.meta.name.view(),
          next.count(), kSoon.count(), desired,
          kubectlOutput(fmt::format("-n {} get podallocations -o yaml", honest.name_space)));
    }
    for (std::size_t i = 0; i < honest.pods.size(); ++i) {
      const auto allocation = allocationFor(*honest.pods[i]);
      const auto now = admin->get<Pod>(honest.name_space, honest.pods[i]->meta.name);
      if (!allocation || !now) return fmt::format("honest pod h{} or its allocation is gone", i);
      if (allocation->statusValue().bounds != honest.bounds[i]) {
        return fmt::format("the bounds of honest pod h{} changed", i);
      }
      if ((*now)->container("main")->requests.cpu() != honest.requests[i]) {
        return fmt::format("the request of honest pod h{} changed", i);
      }
      if (agent::memberOf(**now, allocation.get(), {}).weight !=
          control::weightOf(honest.requests[i], (*now)->priority)) {
        return fmt::format("the weight of honest pod h{} changed", i);
      }
    }
    return std::nullopt;
  }

  // ---- The tenant

  struct Evil {
    std::string name_space;
    std::unique_ptr<kube::Client> client;
    bool may_resize = false;
    int pods = 0;
    int objects = 0;
    std::map<std::string, Json> created;  // pods as they were accepted, by name
  };

  std::string strangePod(Random& random, const std::string& name) {
    std::string containers;
    const std::size_t count = below(random, 20) == 0 ? 120 : 1 + below(random, 3);
    for (std::size_t c = 0; c < count; ++c) {
      const bool plain = below(random, 3) != 0;
      const std::string request = plain ? "100m" : pick(random, kQuantities);
      const std::string limit = plain ? "400m" : pick(random, kQuantities);
      const std::string memory = below(random, 4) == 0 ? pick(random, kQuantities) : "64Mi";
      containers += fmt::format(
          R"({}{{"name":"{}","image":"x","resources":{{"requests":{{"cpu":"{}"}},
             "limits":{{"cpu":"{}","memory":"{}"}}}}{}}})",
          c == 0 ? "" : ",", c == 0 ? "main" : fmt::format("c{}", c), request, limit, memory,
          below(random, 8) == 0
              ? R"(,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}])"
              : "");
    }
    std::string spec;
    if (below(random, 3) != 0) spec += fmt::format(R"("nodeName":"{}",)", kNode);
    if (below(random, 6) == 0) spec += R"("priorityClassName":"system-node-critical",)";
    if (below(random, 8) == 0) {
      spec += fmt::format(R"("resources":{{"limits":{{"cpu":"{}"}}}},)", pick(random, kQuantities));
    }
    if (below(random, 8) == 0) spec += R"("terminationGracePeriodSeconds":9000000000,)";
    std::string annotations;
    for (std::size_t i = below(random, 4); i > 0; --i) {
      annotations += fmt::format(R"({}"{}":"{}")", annotations.empty() ? "" : ",",
                                 pick(random, kKeys), tenantText(random));
    }
    std::string labels;
    if (below(random, 15) == 0) {
      for (int i = 0; i < 3000; ++i) {
        labels += fmt::format(R"({}"l{}":"{:060}")", labels.empty() ? "" : ",", i, i);
      }
    }
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{{{}}},
            "annotations":{{{}}}}},"spec":{{{}"containers":[{}]}}}})",
        name, labels, annotations, spec, containers);
  }

  static std::string tenantText(Random& random) {
    switch (below(random, 4)) {
      case 0:
        return pick(random, kQuantities);
      case 1:
        return std::string(200'000, 'x');
      default:
        return pick(random, kTexts);
    }
  }

  // One of the pods that the server accepted.
  static std::string anyPod(Random& random, const Evil& evil) {
    if (evil.created.empty()) return "e0";
    return std::next(evil.created.begin(),
                     static_cast<std::ptrdiff_t>(below(random, evil.created.size())))
        ->first;
  }

  static std::string podPath(const Evil& evil, const std::string& pod, const char* sub = "") {
    return fmt::format("/api/v1/namespaces/{}/pods/{}{}", evil.name_space, pod, sub);
  }

  // What the tenant tries; the answer of the server.
  kube::ApiResult<std::string> tenantStep(std::uint64_t seed, Evil& evil, std::string& what) {
    Random random(seed);
    const auto patch = [&](const std::string& path, const std::string& body) {
      return evil.client->perform({.method = "PATCH",
                                   .path = path,
                                   .body = body,
                                   .content_type = "application/merge-patch+json"});
    };
    const auto post = [&](const std::string& path, const std::string& body) {
      return evil.client->perform({.method = "POST", .path = path, .body = body});
    };
    const auto name = [&] { return fmt::format("o{}", evil.objects++); };
    const std::string big = below(random, 3) == 0 ? fmt::format(R"("annotations":{{"big":"{}"}},)",
                                                                std::string(200'000, 'b'))
                                                  : "";
    switch (below(random, 13)) {
      case 0:
      case 1:
      case 2: {
        what = "create a strange pod";
        const std::string pod = fmt::format("e{}", evil.pods++);
        auto made = post(fmt::format("/api/v1/namespaces/{}/pods", evil.name_space),
                         strangePod(random, pod));
        if (made) evil.created[pod] = Json::parse(*made);
        return made;
      }
      case 3:
      case 4: {
        const std::string key = pick(random, kKeys);
        const bool remove = below(random, 4) == 0;
        what = "annotate a pod: " + key;
        auto done = patch(podPath(evil, anyPod(random, evil)),
                          fmt::format(R"({{"metadata":{{"annotations":{{"{}":{}}}}}}})", key,
                                      remove ? "null" : "\"" + tenantText(random) + "\""));
        if (done && policies && key == podallocation::kOriginalResources && !remove) {
          forged = "the policy let a tenant write " + key;
        }
        return done;
      }
      case 5:
        what = "label a pod";
        return patch(podPath(evil, anyPod(random, evil)),
                     fmt::format(R"({{"metadata":{{"labels":{{"{}":"{}"}}}}}})",
                                 pick(random, kKeys), below(random, 2) == 0 ? "false" : "true"));
      case 6:
        what = "another image, so that the generation moves on";
        return patch(podPath(evil, anyPod(random, evil)),
                     R"({"spec":{"activeDeadlineSeconds":1000000}})");
      case 7:
        what = "a HorizontalPodAutoscaler";
        return post(
            fmt::format("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
                        evil.name_space),
            fmt::format(
                R"({{"metadata":{{{}"name":"{}"}},"spec":{{"maxReplicas":10,"scaleTargetRef":{{
                    "apiVersion":"apps/v1","kind":"Deployment","name":"h"}},"metrics":[{{"type":"Resource","resource":{{
                    "name":"cpu","target":{{"type":"AverageValue","averageValue":"{}"}}}}}}]}}}})",
                big, name(), below(random, 2) == 0 ? "64" : pick(random, kQuantities)));
      case 8:
        what = "a PodDisruptionBudget that cannot be met";
        return post(
            fmt::format("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", evil.name_space),
            fmt::format(R"({{"metadata":{{{}"name":"{}"}},"spec":{{"minAvailable":1000000,
                                    "selector":{{}}}}}})",
                        big, name()));
      case 9: {
        what = "delete a pod with an absurd grace period";
        return evil.client->perform(
            {.method = "DELETE",
             .path = podPath(evil, anyPod(random, evil)),
             .query = {{"gracePeriodSeconds", below(random, 2) == 0 ? "9000000000" : "0"}}});
      }
      case 10: {
        what = "forge a PodAllocation";
        const std::string path = fmt::format(
            "/apis/allocation.mbcas.io/v1alpha1/namespaces/{}/podallocations", evil.name_space);
        auto done = post(path, fmt::format(R"({{"apiVersion":"allocation.mbcas.io/v1alpha1",
            "kind":"PodAllocation","metadata":{{"name":"{}"}},"spec":{{"namespace":"{}",
            "podName":"e0","desiredCPULimit":"64"}}}})",
                                           name(), evil.name_space));
        if (done) forged = "a tenant could create a PodAllocation";
        return done;
      }
      case 11:
        what = "an ephemeral container";
        return patch(
            podPath(evil, anyPod(random, evil), "/ephemeralcontainers"),
            fmt::format(R"({{"spec":{{"ephemeralContainers":[{{"name":"{}","image":"x"}}]}}}})",
                        name()));
      default:
        what = "resize a pod";
        return evil.client->perform(
            {.method = "PATCH",
             .path = podPath(evil, anyPod(random, evil), "/resize"),
             .query = {{"fieldManager", below(random, 2) == 0 ? "mbcas-controller" : "mallory"}},
             .body = fmt::format(
                 R"({{"spec":{{"containers":[{{"name":"main","resources":{{"limits":{{"cpu":"{}"}}}}}}]}}}})",
                 pick(random, kQuantities)),
             .content_type = "application/strategic-merge-patch+json"});
    }
  }

  // Agents desire something for whatever pods they see.
  void desireForEvil(const Evil& evil, Random& random) {
    for (const auto& [name, created] : evil.created) {
      if (below(random, 2) == 0) continue;
      const auto pod = admin->get<Pod>(evil.name_space, name);
      if (!pod || (*pod)->node.empty()) continue;
      (void)desireAsAgent(*admin, **pod,
                          Millicores(10 * (1 + static_cast<int>(below(random, 900)))));
    }
  }

  // What MBCAS gave the tenant's pods beyond an honest pod's due.
  std::optional<std::string> checkEvil(const Evil& evil) {
    for (const auto& [name, created] : evil.created) {
      const auto pod = admin->get<Pod>(evil.name_space, name);
      if (!pod) continue;  // deleted, or not to be decoded
      const Pod& now = **pod;
      const auto before = kube::decodeObject<Pod>(created.dump());
      if (!before) continue;
      const auto allocation = allocationFor(now);
      const agent::Member member = agent::memberOf(now, allocation.get(), {});
      Millicores requests;
      for (const kube::Container& container : now.containers) {
        const kube::Container* const first = (*before)->container(container.name);
        if (first == nullptr) continue;
        if (!evil.may_resize && now.qos != kube::QosClass::kGuaranteed &&
            container.requests.cpu() != first->requests.cpu()) {
          return fmt::format("the request of {} changed", name);
        }
        const Millicores author = first->limits.cpu().value_or(Millicores(0));
        if (!evil.may_resize && container.limits.cpu() > std::max(author, kCeiling)) {
          return fmt::format("{} has a limit of {}m, its author wrote {}m", name,
                             container.limits.cpu()->count(), author.count());
        }
        requests += container.requests.cpu().value_or(Millicores(0));
      }
      if (now.qos == kube::QosClass::kGuaranteed) continue;
      if (member.weight >
          control::weightOf(std::max(requests, member.all_requests), now.priority) + 1e-9) {
        return fmt::format("{} has a weight of {} for a request of {}m", name, member.weight,
                           requests.count());
      }
      if (allocation && !evil.may_resize) {
        for (const auto& original : allocation->originalValue()) {
          const kube::Container* const first = (*before)->container(original.container);
          const Millicores author =
              first == nullptr ? Millicores(0) : first->limits.cpu().value_or(Millicores(0));
          if (original.limit > std::max(author, kAllocatable)) {
            return fmt::format("{} is said to have declared {}m", name, original.limit->count());
          }
        }
      }
    }
    return std::nullopt;
  }

  // One program in a cluster of its own pair of namespaces; the rule that was broken, if any.
  std::optional<std::string> runTenant(const Program& program, bool may_resize,
                                       std::vector<std::string>* story) {
    const Honest honest = settleHonest();
    if (HasFailure()) return "the honest pods could not be set up";
    Evil evil{.name_space = makeNamespace("evil"),
              .client = clientOf("mallory", {"system:authenticated"}),
              .may_resize = may_resize,
              .created = {}};
    grantEdit(evil.name_space, may_resize);
    // The server's authorizer learns of a new binding a moment later.
    const auto may = [&](const char* verb, const char* subresource) {
      const auto answer = evil.client->mayI({.verb = verb,
                                             .group = "",
                                             .resource = "pods",
                                             .subresource = subresource,
                                             .name_space = evil.name_space});
      return answer && answer->allowed;
    };
    if (!eventually([&] { return may("create", "") && (!may_resize || may("patch", "resize")); })) {
      return "its role was not granted";
    }
    // Some of its pods are as plain as an honest pod, and MBCAS has changed them.
    for (int i = 0; i < 4; ++i) {
      const std::string pod = fmt::format("e{}", evil.pods++);
      const auto made = evil.client->perform(
          {.method = "POST",
           .path = fmt::format("/api/v1/namespaces/{}/pods", evil.name_space),
           .body = podBody(pod, "100m", "400m", fmt::format(R"("nodeName":"{}",)", kNode))});
      if (!made) return "its plain pod was refused: " + made.error().describe();
      evil.created[pod] = Json::parse(*made);
      const auto decoded = kube::decodeObject<Pod>(*made);
      if (!eventually([&] {
            (void)desireAsAgent(*admin, **decoded, 600_m);
            const auto now = allocationFor(**decoded);
            return now && now->applied == 600_m && !now->original.empty();
          })) {
        return "its plain pod was not resized";
      }
    }
    // Nor do new policies count at once.
    if (policies && !eventually([&] {
          return !evil.client->perform(
              {.method = "PATCH",
               .path = podPath(evil, "e0"),
               .query = {{"dryRun", "All"}},
               .body = R"({"metadata":{"annotations":{"mbcas.io/original-resources":"{}"}}})",
               .content_type = "application/merge-patch+json"});
        })) {
      return "the admission policies do not hold";
    }
    Random random(program.empty() ? 0 : program.front());
    forged.clear();
    std::optional<std::string> broken;
    for (std::size_t i = 0; i < program.size() && !broken; ++i) {
      std::string what;
      const auto answer = tenantStep(program[i], evil, what);
      ++(answer ? accepted : refused)[what];
      if (!answer) why.try_emplace(what, answer.error().describe().substr(0, 160));
      if (story != nullptr) {
        story->push_back(
            fmt::format("{} ({})", what, answer ? "accepted" : answer.error().describe()));
      }
      if (!forged.empty()) broken = forged;
      if (i % 10 != 9 && i + 1 != program.size()) continue;
      desireForEvil(evil, random);
      if (!broken) broken = checkHonest(honest, *admin, random);
      if (!broken) broken = checkEvil(evil);
    }
    removeFrom(evil.name_space);
    removeFrom(honest.name_space);
    return broken;
  }

  // Runs random programs until the time is over.
  void tenantFor(Nanos time, std::uint64_t seed) {
    const auto end = std::chrono::steady_clock::now() + time;
    const std::size_t memory = residentBytes();
    int programs = 0;
    while (std::chrono::steady_clock::now() < end || programs == 0) {
      Random random(seed + static_cast<std::uint64_t>(programs));
      Program program(60);
      for (std::uint64_t& step : program) step = random();
      const bool may_resize = programs % 2 == 1;
      if (auto broken = runTenant(program, may_resize, nullptr)) {
        shrink(program, may_resize, *broken);
        return;
      }
      ++programs;
    }
    const std::size_t grown = residentBytes() - std::min(memory, residentBytes());
    EXPECT_LT(grown, std::size_t{128} << 20);
    std::map<std::string, int> all = accepted;
    for (const auto& [what, count] : refused) all[what] += count;
    fmt::print(
        "adversary: {} programs; an honest desire was in force after at most {} ms; "
        "memory grew by {} MB\n",
        programs, slowest.count(), grown >> 20);
    for (const auto& [what, count] : all) {
      fmt::print("  {:50} {:4} tried, {:4} accepted  {}\n", what, count, accepted[what], why[what]);
    }
  }

  // Leaves out steps as long as the same kind of trouble remains.
  void shrink(Program program, bool may_resize, std::string broken) {
    int tries = 0;
    for (std::size_t chunk = program.size() / 2; chunk > 0 && tries < 30; chunk /= 2) {
      for (std::size_t at = 0; at + chunk <= program.size() && tries < 30;) {
        Program less = program;
        less.erase(less.begin() + static_cast<std::ptrdiff_t>(at),
                   less.begin() + static_cast<std::ptrdiff_t>(at + chunk));
        ++tries;
        if (auto still = runTenant(less, may_resize, nullptr)) {
          program = std::move(less);
          broken = *still;
        } else {
          at += chunk;
        }
      }
    }
    std::vector<std::string> story;
    (void)runTenant(program, may_resize, &story);
    FAIL() << broken << "\nafter:\n  " << fmt::format("{}", fmt::join(story, "\n  ")) << "\n"
           << log;
  }

  std::vector<std::string> namespaces;
  std::map<std::string, int> accepted;
  std::map<std::string, int> refused;
  std::map<std::string, std::string> why;  // the first refusal of each
  std::chrono::milliseconds slowest{0};
  std::string forged;
  bool policies = true;
};

Nanos timeFor(int usual_seconds, int soak_seconds) {
  return std::chrono::seconds(trials(usual_seconds, soak_seconds));
}

TEST_F(AdversaryTest, ATenantThatMayEdit) {
  startEngine();
  tenantFor(timeFor(25, 300), 1);
}

// An agent's token on a node that was taken over: it may write allocations that name its node.
TEST_F(AdversaryTest, AnAgentOfAnotherNode) {
  startEngine();
  const auto evil = agentOf("node-evil");
  const auto good = agentOf(kNode);
  const Honest honest = settleHonest();
  ASSERT_FALSE(HasFailure());
  const auto end = std::chrono::steady_clock::now() + timeFor(15, 150);
  Random random(7);
  int fresh = 0;
  while (std::chrono::steady_clock::now() < end || fresh == 0) {
    // A new pod of the honest node: the other agent is first to speak of it.
    const auto pod = runningPod(honest.name_space, fmt::format("n{}", fresh++), "100m", "400m");
    ASSERT_TRUE(pod);
    for (int i = 0; i < 10; ++i) {
      const Pod& target = below(random, 2) == 0 ? *pod : *honest.pods[below(random, 3)];
      const bool named_right = below(random, 3) == 0;
      podallocation::Spec spec{.name_space = target.meta.namespace_.string(),
                               .pod_name = target.meta.name.string(),
                               .node = named_right ? kNode : "node-evil",
                               .desired = 10_m,
                               .containers = {},
                               .wanted = Millicores(10'000'000),
                               .reason = "mine"};
      const std::string uid =
          below(random, 5) == 0 ? fmt::format("made-up-{}", random()) : target.meta.uid.string();
      const auto written = evil->apply<PodAllocation>(
          target.meta.namespace_, uid, podallocation::applySpec({target.meta.name, uid}, spec),
          {.field_manager = podallocation::kAgentManager, .force = true});
      ++(written ? accepted : refused)[named_right ? "claim the other node" : "claim the pod"];
      EXPECT_FALSE(written && named_right) << "it wrote in the name of another node";
      podallocation::Status status;
      status.phase = Phase::kFailed;
      status.original = {{"main", 64000_m, 64000_m}};
      const auto known = allocationFor(target);
      EXPECT_FALSE(evil->apply<PodAllocation>(
          target.meta.namespace_, target.meta.uid,
          podallocation::applyStatus(known ? known->meta : target.meta, status),
          {.subresource = "status", .field_manager = "mbcas-controller", .force = true}));
      EXPECT_FALSE(evil->remove<PodAllocation>(target.meta.namespace_, target.meta.uid));
      EXPECT_FALSE(evil->apply<kube::Lease>(
          kSystem, std::string("mbcas-agent-") + kNode,
          fmt::format(R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{
              "name":"mbcas-agent-{}"}},"spec":{{"holderIdentity":"evil"}}}})",
                      kNode),
          {.field_manager = "mbcas-agent", .force = true}));
    }
    // The pod's own agent is not locked out.
    const bool served = eventually(
        [&] {
          (void)desireAsAgent(*good, *pod, 500_m);
          const auto now = allocationFor(*pod);
          return now && now->phase == Phase::kApplied && now->applied == 500_m;
        },
        kSoon);
    EXPECT_TRUE(served) << kubectlOutput(
                               fmt::format("-n {} get podallocations -o yaml", honest.name_space))
                        << log;
    const auto broken = checkHonest(honest, *good, random);
    EXPECT_FALSE(broken) << *broken;
    if (HasFailure()) return;
  }
  fmt::print("adversary: {} new pods; an honest desire was in force after at most {} ms\n", fresh,
             slowest.count());
}

// Where the admission policies are missing there is less to stop a tenant, but what it writes is
// still no authority. The last of these tests: it takes the policies away.
TEST_F(AdversaryTest, ATenantWithoutAdmissionPolicies) {
  kubectl("delete -k config/policy");
  policies = false;
  startEngine();
  tenantFor(timeFor(15, 150), 1000);
}

}  // namespace
}  // namespace mbcas::test
