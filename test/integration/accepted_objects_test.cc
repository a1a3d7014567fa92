// Whatever an API server accepts, lists and watches go on. Objects of every kind that is read are
// made from the server's own OpenAPI schema, with extreme and odd values in its fields; those that
// the server accepts stay. Then every watch sees an object that was made last, and each has all
// objects of the server besides those that it says it passes over. The same seed makes the same
// objects.
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "mbcas/base/time.h"
#include "mbcas/kube/informer.h"
#include "test/integration/controller_fixture.h"
#include "test/support/trials.h"

namespace mbcas::test {
namespace {

using nlohmann::json;
using namespace literals;
using Random = std::mt19937_64;

constexpr std::uint64_t kSeed = 22;

std::size_t pick(Random& random, std::size_t below) {
  return static_cast<std::size_t>(random() % below);
}
template <class T>
const T& oneOf(Random& random, const std::vector<T>& values) {
  return values[pick(random, values.size())];
}

// --- odd values ---

const std::vector<std::string>& oddTexts() {
  static const std::vector<std::string> kTexts = {
      "",
      "x",
      "a-b.c",
      std::string(63, 'n'),
      std::string(253, 'n'),
      std::string(5000, 'l'),
      "\x01\x02\x1b[31m\x7f",
      "quote\" back\\slash\n\ttab\r",
      "\u00e4\u20ac\U0001F600\u202e\u2028\ufeff\u0085",
      std::string("nul\0byte", 8),
      "null",
      "1e30",
      "-1",
      "2311-06-23T12:00:00Z",
      "../../etc",
      "{\"a\":[}",
  };
  return kTexts;
}

const std::vector<json>& oddQuantities() {
  static const std::vector<json> kQuantities = {"1e30",
                                                "9223372036854775807",
                                                "0.0000001n",
                                                "1n",
                                                "0",
                                                "100m",
                                                "1500u",
                                                "1e-9",
                                                "1Ei",
                                                "8Ei",
                                                "1000E",
                                                "12e6",
                                                "0.5",
                                                "1.0Gi",
                                                "+1",
                                                ".5",
                                                "1e100",
                                                std::string(300, '9'),
                                                0,
                                                1,
                                                1e30,
                                                2.5,
                                                "-1",
                                                "-1e30",
                                                "1Ki",
                                                "100Pi",
                                                "1E"};
  return kQuantities;
}

const std::vector<std::string>& oddTimes() {
  static const std::vector<std::string> kTimes = {
      "2026-01-31T08:30:05Z",        "0001-01-01T00:00:00Z",
      "0000-01-01T00:00:00Z",        "9999-12-31T23:59:59Z",
      "2311-06-23T12:00:00Z",        "1677-01-01T00:00:00Z",
      "2026-01-31T08:30:05.123456Z", "2026-01-31T10:30:05+14:00",
      "1970-01-01T00:00:00Z",        "9999-12-31T23:59:59.999999-12:00"};
  return kTimes;
}

const std::vector<std::int64_t>& oddIntegers() {
  static const std::vector<std::int64_t> kIntegers = {0,
                                                      1,
                                                      -1,
                                                      7,
                                                      100,
                                                      65'535,
                                                      INT32_MAX,
                                                      INT32_MIN,
                                                      std::int64_t{INT32_MAX} + 1,
                                                      9'000'000'000,
                                                      INT64_MAX,
                                                      INT64_MIN};
  return kIntegers;
}

// The schemas of a group, as the server publishes them.
class Schemas {
 public:
  Schemas() = default;
  explicit Schemas(json document) : document_(std::move(document)) {}

  const json* of(std::string_view kind) const {
    for (const auto& [name, schema] : all().items()) {
      const json kinds = schema.value("x-kubernetes-group-version-kind", json::array());
      // Lists and options of requests carry several or other kinds.
      if (kinds.size() == 1 && kinds[0].value("kind", "") == kind) return &schema;
    }
    return nullptr;
  }

  // Follows references.
  const json& resolved(const json& schema) const {
    const json* now = &schema;
    for (int i = 0; i < 8; ++i) {
      const json* next = now;
      if (now->contains("allOf") && !now->at("allOf").empty()) next = &now->at("allOf")[0];
      if (next->contains("$ref")) {
        const std::string reference = next->at("$ref");
        const std::string name = reference.substr(reference.rfind('/') + 1);
        const auto found = all().find(name);
        if (found == all().end()) break;
        next = &*found;
      }
      if (next == now) break;
      now = next;
    }
    return *now;
  }
  static std::string nameOf(const json& schema) {
    const json* now = &schema;
    if (now->contains("allOf") && !now->at("allOf").empty()) now = &now->at("allOf")[0];
    return now->value("$ref", "");
  }

  // A value that has the right type, and nothing else in its favour.
  json odd(const json& schema, Random& random, int depth = 0) const {
    const std::string name = nameOf(schema);
    if (name.ends_with(".Quantity")) return oneOf(random, oddQuantities());
    const json& found = resolved(schema);
    if (found.value("x-kubernetes-int-or-string", false) || name.ends_with(".IntOrString") ||
        found.value("format", "") == "int-or-string") {
      if (pick(random, 2) == 0) return oneOf(random, oddIntegers());
      return pick(random, 2) == 0 ? json(oneOf(random, oddTexts())) : json("50%");
    }
    if (found.contains("enum") && pick(random, 4) != 0) {
      const std::vector<json> values = found.at("enum");
      return oneOf(random, values);
    }
    const std::string type = found.value("type", "");
    if (type == "string") {
      if (found.value("format", "") == "date-time") return oneOf(random, oddTimes());
      return oneOf(random, oddTexts());
    }
    if (type == "integer" || type == "number") return oneOf(random, oddIntegers());
    if (type == "boolean") return pick(random, 2) == 0;
    if (depth > 5) return nullptr;
    if (type == "array") {
      static const std::vector<std::size_t> kSizes = {0, 1, 1, 2, 40};
      json array = json::array();
      const std::size_t size = depth > 2 ? pick(random, 2) : oneOf(random, kSizes);
      for (std::size_t i = 0; i < size; ++i) {
        array.push_back(odd(found.at("items"), random, depth + 1));
      }
      return array;
    }
    if (found.contains("additionalProperties") && found.at("additionalProperties").is_object()) {
      static const std::vector<std::size_t> kSizes = {0, 1, 2, 300};
      json map = json::object();
      const std::size_t size = oneOf(random, kSizes);
      for (std::size_t i = 0; i < size; ++i) {
        const std::string key = pick(random, 3) == 0 ? oneOf(random, oddTexts())
                                : pick(random, 2) == 0
                                    ? std::string(pick(random, 2) == 0 ? "cpu" : "memory")
                                    : fmt::format("example.com/k{}", i);
        map[key] = odd(found.at("additionalProperties"), random, depth + 1);
      }
      return map;
    }
    json object = json::object();
    const std::set<std::string> required = found.value("required", std::set<std::string>());
    const json properties = found.value("properties", json::object());
    for (const auto& [key, property] : properties.items()) {
      if (required.contains(key) || pick(random, 4) == 0) {
        object[key] = odd(property, random, depth + 1);
      }
    }
    return object;
  }

  // Changes one field, somewhere.
  void mutate(json& object, const json& schema, Random& random, int depth = 0) const {
    const json& found = resolved(schema);
    if (object.is_array() && found.contains("items")) {
      if (object.empty() || pick(random, 4) == 0) {
        object = odd(schema, random, depth);
      } else {
        mutate(object[pick(random, object.size())], found.at("items"), random, depth + 1);
      }
      return;
    }
    if (!found.contains("properties") || !object.is_object()) {
      object = odd(schema, random, depth);
      return;
    }
    const json& properties = found.at("properties");
    std::vector<std::string> keys;
    for (const auto& [key, property] : properties.items()) {
      // What identifies an object, and what would keep it from ever going away.
      static const std::set<std::string> kLeft = {
          "apiVersion",    "kind",       "name", "namespace",       "generateName",
          "managedFields", "finalizers", "uid",  "resourceVersion", "selfLink"};
      if (depth <= 1 && kLeft.contains(key)) continue;
      keys.push_back(key);
    }
    if (keys.empty()) return;
    std::string key = oneOf(random, keys);
    // What the object has already is where most of the meaning is.
    for (int i = 0; i < 2 && !object.contains(key); ++i) key = oneOf(random, keys);
    if (object.contains(key) && pick(random, 3) != 0) {
      mutate(object[key], properties.at(key), random, depth + 1);
    } else {
      object[key] = odd(properties.at(key), random, depth + 1);
    }
  }

 private:
  const json& all() const { return document_.at("components").at("schemas"); }
  json document_;
};

// --- what is watched ---

struct Follower {
  std::string what;
  std::function<std::set<std::string>()> objects;  // keys
  std::function<std::vector<kube::PassedOver>()> passed_over;
  std::function<kube::WatchHealth()> health;
  std::function<bool(Nanos)> wait;
  std::shared_ptr<void> informer;
  std::shared_ptr<std::atomic<int>> failures = std::make_shared<std::atomic<int>>(0);
  std::string path;  // of the list that it must be equal to
};

struct KindOfObject {
  std::string kind;
  std::string group_path;  // of the schema
  std::string list_path;   // "{}" is the namespace
  json base;
  bool has_status = false;
};

const json kMeta = {{"labels", {{"app", "web"}}}, {"annotations", {{"note", "text"}}}};

class AcceptedObjectsTest : public ControllerTest {
 protected:
  // --- talking to the server ---

  kube::ApiResult<std::string> send(const std::string& method, const std::string& path,
                                    const std::string& body,
                                    const std::string& type = "application/json") {
    return admin->perform(
        {.method = method, .path = path, .body = body, .content_type = type, .retry = true});
  }
  json getJson(const std::string& path) {
    const auto body = admin->perform({.path = path});
    EXPECT_TRUE(body) << path << ": " << body.error().describe();
    return body ? json::parse(*body) : json();
  }
  std::set<std::string> keysOnServer(const std::string& path) {
    std::set<std::string> keys;
    std::string next;
    do {
      kube::Call call{.path = path};
      call.query.emplace_back("limit", "500");
      if (!next.empty()) call.query.emplace_back("continue", next);
      call.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
      const auto body = admin->perform(std::move(call));
      EXPECT_TRUE(body) << path << ": " << body.error().describe();
      if (!body) return keys;
      const json list = json::parse(*body);
      for (const json& item : list.at("items")) {
        keys.insert(kube::objectKey(item.at("metadata").value("namespace", ""),
                                    item.at("metadata").value("name", "")));
      }
      next = list.at("metadata").value("continue", "");
    } while (!next.empty());
    return keys;
  }

  std::string in(const std::string& path) const { return fmt::format(fmt::runtime(path), ns); }

  // --- following ---

  using Keys = std::vector<std::string>;

  template <class T>
  void follow(const std::string& what, kube::WatchOptions options,
              const kube::Kind& kind = T::kind()) {
    Follower follower;
    follower.what = fmt::format("{} ({})", T::kind().name, what);
    options.on_error = [failures = follower.failures](const kube::ApiError& error) {
      // A busy machine is slow; only what cannot be read counts.
      if (error.reason == kube::ApiError::kMalformed) ++*failures;
    };
    follower.path = T::kind().path(options.name_space);
    auto informer = std::make_shared<kube::Informer<T>>(*admin, std::move(options), kind);
    follower.objects = [informer] {
      std::set<std::string> keys;
      for (const auto& object : informer->list()) keys.insert(kube::objectKey(object->meta));
      return keys;
    };
    follower.passed_over = [informer] { return informer->passedOver(); };
    follower.health = [informer] { return informer->health(); };
    follower.wait = [informer](Nanos time) { return informer->waitForSync(time); };
    follower.informer = informer;
    informer->start();
    followers.push_back(std::move(follower));
  }

  template <class T>
  void followBoth(const std::string& what, const kube::WatchOptions& options) {
    follow<T>(what + ", streamed", options);
    kube::WatchOptions plain = options;
    plain.tuning.streaming_list = false;
    follow<T>(what + ", paged", plain);
  }

  // As the controller and the agent do, over all namespaces or as they select.
  void followAll() {
    const kube::WatchOptions bare{.annotations = Keys{}, .labels = Keys{}, .most_kept = 16 << 10};
    const kube::WatchOptions pods{.annotations = Keys{"mbcas.io/", "kubernetes.io/config."}};
    followBoth<Pod>("own annotations", pods);
    followBoth<Pod>("everything", {});
    static const kube::Kind kJsonPod = [] {
      kube::Kind kind = Pod::kind();
      kind.protobuf = nullptr;
      return kind;
    }();
    follow<Pod>("as JSON", pods, kJsonPod);
    followBoth<PodAllocation>("bare", bare);
    followBoth<kube::Node>("bare", bare);
    followBoth<kube::Namespace>("own annotations", {.annotations = Keys{"mbcas.io/"}});
    followBoth<kube::LimitRange>("bare", bare);
    followBoth<kube::ResourceQuota>("bare", bare);
    followBoth<kube::HorizontalPodAutoscaler>("bare", bare);
    followBoth<kube::PodDisruptionBudget>("bare", bare);
    followBoth<kube::Lease>("bare", bare);
    followBoth<kube::ConfigMap>("bare", bare);
    followBoth<kube::ConfigMap>("everything", {});
  }

  // Each has what the server has, besides what it says it passes over.
  void expectAllEqual(const std::string& when) {
    for (const Follower& follower : followers) {
      ASSERT_TRUE(follower.wait(std::chrono::seconds(90))) << follower.what << " " << when;
      std::set<std::string> missing;
      const bool equal = eventually([&] {
        const std::set<std::string> server = keysOnServer(follower.path);
        std::set<std::string> here = follower.objects();
        for (const kube::PassedOver& object : follower.passed_over()) {
          EXPECT_FALSE(here.contains(kube::objectKey(object.name_space, object.name)));
          here.insert(kube::objectKey(object.name_space, object.name));
        }
        missing.clear();
        std::set_symmetric_difference(server.begin(), server.end(), here.begin(), here.end(),
                                      std::inserter(missing, missing.end()));
        return missing.empty();
      });
      EXPECT_TRUE(equal) << follower.what << " " << when << ": " << missing.size()
                         << " differ, such as "
                         << (missing.empty() ? std::string() : *missing.begin()) << "; "
                         << follower.health().last_error;
      EXPECT_EQ(*follower.failures, 0) << follower.what << " " << when;
      EXPECT_TRUE(eventually([&] {
        return follower.health().stuckFor(clock.monotonic()) == Nanos(0);
      })) << follower.what
          << " " << when << ": " << follower.health().last_error;
    }
  }

  void printPassedOver(const std::string& when) {
    std::map<std::string, std::string> reasons;  // one example of each
    std::map<std::string, int> counts;
    for (const Follower& follower : followers) {
      for (const kube::PassedOver& object : follower.passed_over()) {
        const std::string key =
            fmt::format("{}: {}", follower.what, object.why.substr(object.why.rfind(": ") + 1, 60));
        ++counts[key];
        reasons.try_emplace(key, object.why);
      }
    }
    fmt::print("passed over {}:\n", when);
    for (const auto& [key, why] : reasons) fmt::print("  {:4} {}\n", counts[key], key);
  }

  // --- making objects ---

  static const std::vector<KindOfObject>& kinds() {
    static const std::vector<KindOfObject> kKinds = {
        {"Pod", "api/v1", "/api/v1/namespaces/{}/pods",
         json::parse(R"({"spec":{"nodeName":"elsewhere","containers":[{"name":"main","image":"x",
           "resources":{"requests":{"cpu":"100m","memory":"64Mi"},
                        "limits":{"cpu":"200m","memory":"128Mi"}}}],
           "initContainers":[{"name":"init","image":"x"}],"priority":0}})"),
         true},
        {"Node", "api/v1", "/api/v1/nodes",
         json::parse(R"({"spec":{},"status":{"capacity":{"cpu":"4"}}})"), true},
        {"Namespace", "api/v1", "/api/v1/namespaces", json::object(), false},
        {"LimitRange", "api/v1", "/api/v1/namespaces/{}-small/limitranges",
         json::parse(R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"4"},
           "min":{"cpu":"10m"},"default":{"cpu":"1"},"defaultRequest":{"cpu":"100m"}}]}})"),
         false},
        {"ResourceQuota", "api/v1", "/api/v1/namespaces/{}-small/resourcequotas",
         json::parse(R"({"spec":{"hard":{"limits.cpu":"4","requests.cpu":"2"},
           "scopes":["NotBestEffort"]}})"),
         true},
        {"ConfigMap", "api/v1", "/api/v1/namespaces/{}/configmaps",
         json::parse(R"({"data":{"v":"1"}})"), false},
        {"HorizontalPodAutoscaler", "apis/autoscaling/v2",
         "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
         json::parse(R"({"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment",
           "name":"web"},"minReplicas":1,"maxReplicas":3,"metrics":[{"type":"Resource","resource":
           {"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},
           {"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue",
           "averageValue":"1"}}}]}})"),
         true},
        {"PodDisruptionBudget", "apis/policy/v1",
         "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
         json::parse(R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"},
           "matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}}})"),
         true},
        {"Lease", "apis/coordination.k8s.io/v1",
         "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
         json::parse(R"({"spec":{"holderIdentity":"me","leaseDurationSeconds":15,
           "renewTime":"2026-01-31T08:30:05.000000Z"}})"),
         false},
        {"PodAllocation", "apis/allocation.mbcas.io/v1alpha1",
         "/apis/allocation.mbcas.io/v1alpha1/namespaces/{}/podallocations",
         json::parse(R"({"spec":{"namespace":"NS","podName":"web","nodeName":"elsewhere",
           "desiredCPULimit":"500m","wantedCPULimit":"1"}})"),
         true},
    };
    return kKinds;
  }

  struct Counts {
    std::atomic<int> created = 0;
    std::atomic<int> refused = 0;
    std::atomic<int> unreachable = 0;
    std::mutex mutex;
    std::string refusal;  // the last one
  };

  json baseOf(const KindOfObject& kind, const std::string& name) const {
    json object = kind.base;
    object["apiVersion"] = kind.group_path.substr(kind.group_path.find('/') + 1);
    object["kind"] = kind.kind;
    object["metadata"] = kMeta;
    object["metadata"]["name"] = name;
    if (kind.kind == "PodAllocation") object["spec"]["namespace"] = ns;
    return object;
  }

  void makeOne(const KindOfObject& kind, const Schemas& schemas, const json& schema, int number,
               Counts& counts) {
    // Each object has its own chance, whatever thread makes it.
    Random random(kSeed * 1'000'003 + std::hash<std::string>{}(kind.kind) * 31 +
                  static_cast<std::uint64_t>(number));
    const std::string name =
        number % 50 == 49 ? fmt::format("g{}-{}", number, std::string(55, 'x'))
                          : fmt::format("g{}-{}", kind.kind == "Namespace" ? ns : "o", number);
    json object = baseOf(kind, name);
    const std::size_t changes = 1 + pick(random, 3);
    for (std::size_t i = 0; i < changes; ++i) schemas.mutate(object, schema, random);
    const auto count = [&](const kube::ApiResult<std::string>& answer) {
      ++(answer                           ? counts.created
         : answer.error().code / 100 == 4 ? counts.refused
         : answer.error().answered()      ? counts.refused
                                          : counts.unreachable);
      if (answer) return true;
      const std::lock_guard lock(counts.mutex);
      counts.refusal = answer.error().describe();
      return false;
    };
    const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
    if (!count(send("POST", in(kind.list_path), text))) {
      // So that there is one with its status changed.
      if (!kind.has_status || !send("POST", in(kind.list_path), baseOf(kind, name).dump())) return;
    }
    if (!kind.has_status || pick(random, 2) != 0) return;
    json status = json::object();
    const json& properties = schemas.resolved(schema).at("properties");
    status["status"] = schemas.odd(properties.at("status"), random, 1);
    count(send("PATCH", fmt::format("{}/{}/status", in(kind.list_path), name),
               status.dump(-1, ' ', false, json::error_handler_t::replace),
               "application/merge-patch+json"));
  }

  // --- protobuf of one's own ---

  static std::string varint(std::uint64_t number) {
    std::string bytes;
    for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
    return bytes + static_cast<char>(number);
  }
  static std::string field(int number, std::string_view bytes) {
    return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) +
           std::string(bytes);
  }
  static std::string envelope(std::string_view version, std::string_view kind,
                              std::string_view object) {
    return std::string(kube::kProtobufMagic) + field(1, field(1, version) + field(2, kind)) +
           field(2, object);
  }

  std::vector<Follower> followers;
};

TEST_F(AcceptedObjectsTest, AreSeenOrPassedOverAndNothingStops) {
  kubectl("create namespace " + ns + "-small");
  kubelet.reset();  // most of these pods could not run
  startEngine();
  followAll();
  for (const Follower& follower : followers) ASSERT_TRUE(follower.wait(std::chrono::seconds(90)));

  // The ones that have names.
  const std::string pods = in("/api/v1/namespaces/{}/pods");
  const auto expectAccepted = [](const kube::ApiResult<std::string>& answer,
                                 const std::string& what) {
    EXPECT_TRUE(answer) << what << ": " << answer.error().describe();
  };
  const auto podWith = [&](const std::string& name, const json& change = json::object()) {
    json pod = baseOf(kinds()[0], name);
    pod.merge_patch(change);
    return pod;
  };
  const auto limited = [&](const std::string& name, const json& limits) {
    json pod = baseOf(kinds()[0], name);
    pod["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "1m"}}}, {"limits", limits}};
    return pod;
  };
  expectAccepted(send("POST", pods, limited("memory-1e30", {{"memory", "1e30"}}).dump()), "1e30");
  expectAccepted(send("POST", pods, limited("cpu-1e30", {{"cpu", "1e30"}}).dump()), "1e30");
  expectAccepted(send("POST", pods, limited("cpu-most", {{"cpu", "9223372036854775807"}}).dump()),
                 "2^63 - 1");
  expectAccepted(send("POST", pods, limited("cpu-digits", {{"cpu", std::string(300, '9')}}).dump()),
                 "300 digits");
  expectAccepted(send("POST", pods, limited("cpu-least", {{"cpu", "0.0000001n"}}).dump()), "least");
  expectAccepted(send("POST", pods, podWith(std::string(253, 'n')).dump()), "a long name");
  const std::string odd = "\x01\x1b[31m\u0085\u202e\U0001F600";
  expectAccepted(
      send("POST", pods,
           podWith("annotated",
                   {{"metadata", {{"annotations", {{"mbcas.io/min-cpu", odd}, {"x", odd}}}}}})
               .dump()),
      "control characters");
  json labelled = podWith("labelled");
  for (int i = 0; i < 5000; ++i) {
    labelled["metadata"]["labels"][fmt::format("example.com/l{}", i)] = std::string(63, 'v');
  }
  expectAccepted(send("POST", pods, labelled.dump()), "5000 labels");
  json crowded = podWith("crowded");
  crowded["spec"]["containers"] = json::array();
  for (int i = 0; i < 400; ++i) {
    crowded["spec"]["containers"].push_back({{"name", fmt::format("c{}", i)}, {"image", "x"}});
  }
  expectAccepted(send("POST", pods, crowded.dump()), "400 containers");
  EXPECT_FALSE(
      send("POST", pods, podWith("none", {{"spec", {{"containers", json::array()}}}}).dump()))
      << "a pod has a container";
  (void)send(
      "POST", pods,
      podWith("pod-level", {{"spec", {{"resources", {{"limits", {{"cpu", "1e30"}}}}}}}}).dump());
  // 8 MB as JSON: each of these takes six bytes there, so that it could not be sent as such.
  expectAccepted(
      send("POST", pods,
           envelope("v1", "Pod",
                    field(1, field(1, "large")) +
                        field(2, field(2, field(1, "main") + field(2, "x") +
                                              field(4, std::string(1'300'000, '\x01'))))),
           "application/vnd.kubernetes.protobuf"),
      "1.3 MB of control characters");
  expectAccepted(send("POST", pods, podWith("ephemeral").dump()), "ephemeral");
  expectAccepted(send("PATCH", pods + "/ephemeral/ephemeralcontainers",
                      R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"x"}]}})",
                      "application/strategic-merge-patch+json"),
                 "ephemeral containers");
  expectAccepted(send("POST", pods, podWith("patient").dump()), "patient");
  expectAccepted(send("DELETE", pods + "/patient", R"({"gracePeriodSeconds":9000000000})"),
                 "an absurd grace period");
  expectAccepted(send("POST", pods, podWith("impatient").dump()), "impatient");
  (void)send("DELETE", pods + "/impatient", R"({"gracePeriodSeconds":9000000000000000})");
  // Text that is not UTF-8, in an annotation that is read.
  const std::string meta =
      field(1, "not-utf8") + field(12, field(1, "mbcas.io/min-cpu") + field(2, "\xff\xfe\xc3"));
  const std::string spec = field(2, field(1, "main") + field(2, "x"));
  expectAccepted(send("POST", pods, envelope("v1", "Pod", field(1, meta) + field(2, spec)),
                      "application/vnd.kubernetes.protobuf"),
                 "not UTF-8");
  // A time that no RFC 3339 can write.
  const std::string renewed = field(7, "\x08" + varint(std::uint64_t{1} << 62));
  (void)send("POST", in("/apis/coordination.k8s.io/v1/namespaces/{}/leases"),
             envelope("coordination.k8s.io/v1", "Lease",
                      field(1, field(1, "far-away")) + field(2, field(1, "me") + renewed)),
             "application/vnd.kubernetes.protobuf");
  json scaler = baseOf(kinds()[6], "large");
  scaler["spec"]["metrics"] =
      json::array({{{"type", "External"},
                    {"external",
                     {{"metric", {{"name", std::string(400'000, '\x01')}}},
                      {"target", {{"type", "Value"}, {"value", "1e30"}}}}}}});
  (void)send("POST", in(kinds()[6].list_path), scaler.dump());
  json budget = baseOf(kinds()[7], "large");
  for (int i = 0; i < 8000; ++i) {
    budget["spec"]["selector"]["matchLabels"][fmt::format("example.com/l{}", i)] = "v";
  }
  expectAccepted(send("POST", in(kinds()[7].list_path), budget.dump()), "a large selector");
  expectAccepted(
      send("POST", in(kinds()[5].list_path),
           json({{"metadata", {{"name", "large"}}}, {"data", {{"v", std::string(1'000'000, 'x')}}}})
               .dump()),
      "a large ConfigMap");
  expectAllEqual("after the named ones");

  // Those of the schema.
  const int number = trials(80, 3000);
  for (const KindOfObject& kind : kinds()) {
    const Schemas schemas(getJson("/openapi/v3/" + kind.group_path));
    const json* const schema = schemas.of(kind.kind);
    ASSERT_NE(schema, nullptr) << kind.kind;
    Counts counts;
    each(kind.kind == "Namespace" || kind.kind == "Node" ? number / 3 : number,
         [&](int i) { makeOne(kind, schemas, *schema, i, counts); });
    fmt::print("{:24} {:5} accepted, {:5} refused\n", kind.kind, counts.created.load(),
               counts.refused.load());
    EXPECT_EQ(counts.unreachable, 0) << kind.kind;
    EXPECT_GT(counts.created, 0) << kind.kind << ": " << counts.refusal;
  }

  // Everything is seen, by those that watch and by those that list now.
  expectAllEqual("after the schema's");
  printPassedOver("by watches");
  followers.clear();
  followAll();
  expectAllEqual("in a new list");

  // And the controller works.
  kubelet = std::make_unique<FakeKubelet>(*admin, FakeKubelet::Options{.node = kNode});
  const auto web = makePod("after-all");
  desire(*web, 500_m);
  expectApplied(*web, 500_m);
  const std::string exposition = metrics->text();
  EXPECT_NE(exposition.find("kube_watch_stuck_seconds{kind=\"Pod\"} 0\n"), std::string::npos);
  for (const char* name : {"memory-1e30", "cpu-1e30", "cpu-most", "cpu-digits"}) {
    EXPECT_EQ(annotation(name), "") << "the way back of " << name << " cannot be written";
  }
}

}  // namespace
}  // namespace mbcas::test
