#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "mbcas/base/time.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"
#include "mbcas/kube/watch_stream.h"

namespace mbcas::kube {
namespace {

using namespace literals;

std::string readFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class T>
std::shared_ptr<const T> decoded(const std::string& json) {
  Result<std::shared_ptr<const T>> object = decodeObject<T>(json);
  if (!object) {
    ADD_FAILURE() << object.error().message();
    return nullptr;
  }
  return *object;
}

template <class T>
std::string errorOf(const std::string& json) {
  const auto object = decodeObject<T>(json);
  return object ? "" : object.error().message();
}

TEST(Arena, KeepsTextsAndListsAcrossBlocks) {
  Arena arena(16);
  std::vector<Str> texts;
  for (std::size_t i = 0; i < 300; ++i) texts.push_back(arena.text(std::string(i, 'x')));
  const List<Str> list = arena.list(texts);
  const Arena moved = std::move(arena);
  ASSERT_EQ(list.size(), 300u);
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(list[i].view(), std::string(i, 'x'));
  EXPECT_TRUE(Str().empty());
  EXPECT_TRUE(List<Str>().empty());
}

TEST(JsonCursor, SaysWhereItWentWrong) {
  EXPECT_EQ(errorOf<Pod>(R"({"metadata":{"name":7}})"),
            "decoding a Pod: metadata.name: not a string");
  EXPECT_EQ(errorOf<Pod>(R"({"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[{},)"
                         R"({"resources":{"limits":{"cpu":"1x"}}}]}})")
                .rfind("decoding a Pod n/p: spec.containers[1].resources.limits.cpu: ", 0),
            0u);
  EXPECT_EQ(errorOf<Pod>(R"({"metadata":{"name":"p","creationTimestamp":"yesterday"}})"),
            "decoding a Pod p: metadata.creationTimestamp: not an RFC 3339 time: \"yesterday\"");
  EXPECT_NE(errorOf<Pod>(""), "");
  EXPECT_NE(errorOf<Pod>("[]"), "");
  EXPECT_NE(errorOf<Pod>(R"({"metadata":{"name":"p"})"), "");
  EXPECT_EQ(errorOf<Pod>("{}"), "decoding a Pod: metadata.name is missing");
}

TEST(JsonCursor, TheDocumentItselfIsNoScalar) {
  JsonParser parser;
  std::string text = R"({"a":1})";
  EXPECT_FALSE(parser.parse(text, [](JsonCursor root) { EXPECT_EQ(root.text(), ""); }));
  EXPECT_FALSE(parser.parse(text, [](JsonCursor root) { EXPECT_EQ(root.scalar(), ""); }));
  EXPECT_FALSE(parser.parse(text, [](JsonCursor root) { EXPECT_EQ(root.integer(), 0); }));
  EXPECT_FALSE(parser.parse(text, [](JsonCursor root) { EXPECT_FALSE(root.boolean()); }));
  EXPECT_FALSE(parser.parse(text, [](JsonCursor root) { root.elements([](JsonCursor) {}); }));
}

TEST(JsonCursor, TakesNullForAbsent) {
  const auto pod = decoded<Pod>(
      R"({"metadata":{"name":"p","labels":null,"creationTimestamp":null},"spec":null,"status":{"containerStatuses":null}})");
  EXPECT_TRUE(pod->meta.labels.empty());
  EXPECT_EQ(pod->meta.created, WallTime{});
  EXPECT_TRUE(pod->containers.empty());
}

TEST(Pod, KeepsWhatAControllerOfCpuNeeds) {
  const auto pod = decoded<Pod>(readFile("test/captures/kube/pod.json"));
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->meta.namespace_, "shop");
  EXPECT_EQ(pod->meta.name, "web-7d4b9c-x2x8k");
  EXPECT_EQ(pod->meta.uid, "6f0d2b3e-5a0e-4f2b-9f2e-0d6f5c1b7a11");
  EXPECT_EQ(pod->meta.resource_version, "48213");
  EXPECT_EQ(pod->meta.generation, 3);
  EXPECT_EQ(formatRfc3339(pod->meta.created), "2026-02-01T10:00:00Z");
  EXPECT_FALSE(pod->meta.beingDeleted());
  EXPECT_EQ(find(pod->meta.labels, "app"), "web");
  EXPECT_EQ(find(pod->meta.annotations, "note"), "kept");
  EXPECT_EQ(find(pod->meta.annotations, "kubectl.kubernetes.io/last-applied-configuration"),
            std::nullopt);
  ASSERT_NE(pod->meta.controller(), nullptr);
  EXPECT_EQ(pod->meta.controller()->name, "web-7d4b9c");
  EXPECT_EQ(pod->node, "node-1");
  EXPECT_EQ(pod->phase, PodPhase::kRunning);
  EXPECT_EQ(pod->qos, QosClass::kBurstable);
  EXPECT_EQ(pod->priority, 1000);
  EXPECT_TRUE(pod->ready);
  EXPECT_FALSE(pod->mirror());
  EXPECT_FALSE(pod->windows);

  ASSERT_EQ(pod->containers.size(), 3u);
  EXPECT_EQ(pod->containers[0].role, ContainerRole::kInit);
  EXPECT_EQ(pod->containers[1].role, ContainerRole::kSidecar);
  const Container* server = pod->container("server");
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(server->role, ContainerRole::kMain);
  EXPECT_EQ(server->requests.cpu(), 500_m);
  EXPECT_EQ(server->limits.cpu(), 1500_m);
  EXPECT_EQ(server->limits.memoryBytes(), 1 << 30);
  EXPECT_FALSE(server->restarts_on_cpu_resize);
  EXPECT_TRUE(server->restarts_on_memory_resize);
  EXPECT_EQ(pod->container("proxy")->limits.cpu(), std::nullopt);

  const ContainerStatus* status = pod->status("server");
  ASSERT_NE(status, nullptr);
  EXPECT_TRUE(status->running);
  EXPECT_TRUE(status->has_resources);
  EXPECT_EQ(status->restarts, 2);
  EXPECT_EQ(status->limits.cpu(), 1000_m);
  EXPECT_EQ(status->allocated.cpu(), 500_m);
  EXPECT_EQ(status->id.view().substr(0, 13), "containerd://");
  EXPECT_TRUE(pod->nodeSupportsResize());

  EXPECT_TRUE(pod->resizePending().present);
  EXPECT_EQ(pod->resizePending().reason, "Deferred");
  EXPECT_EQ(pod->resizePending().observed_generation, 3);
  EXPECT_FALSE(pod->resizeInProgress().present);
  EXPECT_EQ(pod->observed_generation, 2);
}

TEST(Decoder, KeepsOneCopyOfWhatObjectsShare) {
  Decoder decoder;
  const auto decode = [&](const std::string& name) {
    std::string json =
        R"({"metadata":{"name":")" + name + R"(","namespace":"ns","labels":{"a":"b"}}})";
    return *decoder.decode(Pod::kind(), json);
  };
  // A pool would be larger than the only object of most decoders.
  const ObjectPtr first = decode("first");
  const ObjectPtr one = decode("one");
  ObjectPtr two = decode("two");
  EXPECT_NE(first->meta.namespace_.view().data(), one->meta.namespace_.view().data());
  EXPECT_EQ(one->meta.namespace_.view().data(), two->meta.namespace_.view().data());
  EXPECT_EQ(one->meta.labels[0].value.view().data(), two->meta.labels[0].value.view().data());
  EXPECT_EQ(one->meta.labels.begin(), two->meta.labels.begin());  // the whole list
  // New texts without end: old pools go when their objects do, and nothing that lives is lost.
  for (int i = 0; i < 50'000; ++i) two = decode(std::to_string(i));
  for (int i = 0; i < 50'000; ++i) {
    std::string json = R"({"metadata":{"name":"x","labels":{"a":")" + std::to_string(i) +
                       std::string(100, 'y') + R"("}}})";
    two = *decoder.decode(Pod::kind(), json);
  }
  EXPECT_EQ(find(one->meta.labels, "a"), "b");
  EXPECT_EQ(find(two->meta.labels, "a"), "49999" + std::string(100, 'y'));
}

TEST(Decoder, KeepsOneListOfContainersForPodsThatAreAlike) {
  Decoder decoder;
  const auto decode = [&](const std::string& limit) {
    std::string json =
        R"({"metadata":{"name":"p","ownerReferences":[{"kind":"ReplicaSet","name":"r","uid":"u",)"
        R"("controller":true}]},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":")" +
        limit + R"("}}}]}})";
    return std::static_pointer_cast<const Pod>(*decoder.decode(Pod::kind(), json));
  };
  (void)decode("1");  // before there is a pool
  const auto one = decode("1");
  const auto two = decode("1");
  const auto other = decode("2");
  EXPECT_EQ(one->containers.begin(), two->containers.begin());
  EXPECT_EQ(one->meta.owners.begin(), other->meta.owners.begin());
  EXPECT_NE(one->containers.begin(), other->containers.begin());
  EXPECT_EQ(other->containers[0].limits.cpu(), 2000_m);
}

// Each PodAllocation is owned by a pod of its own: the pool would grow with every one of them.
TEST(Decoder, KeepsOwnersThatControlNothingWithTheirObject) {
  Decoder decoder;
  const auto decode = [&](const std::string& owners) {
    std::string json = R"({"metadata":{"name":"p","ownerReferences":[)" + owners + "]}}";
    return *decoder.decode(Pod::kind(), json);
  };
  const std::string pod = R"({"kind":"Pod","name":"a-name","uid":"a-uid"})";
  const std::string set =
      R"({"controller":true,"kind":"ReplicaSet","name":"a-set","uid":"its-uid"})";
  (void)decode(pod);
  const ObjectPtr one = decode(pod);
  const ObjectPtr two = decode(pod);
  ASSERT_EQ(two->meta.owners.size(), 1u);
  EXPECT_EQ(two->meta.owners[0].kind, "Pod");
  EXPECT_EQ(two->meta.owners[0].name, "a-name");
  EXPECT_EQ(two->meta.owners[0].uid, "a-uid");
  EXPECT_NE(one->meta.owners[0].uid.view().data(), two->meta.owners[0].uid.view().data());
  EXPECT_EQ(two->meta.controller(), nullptr);
  const ObjectPtr both = decode(pod + "," + set);
  ASSERT_EQ(both->meta.owners.size(), 2u);
  ASSERT_NE(both->meta.controller(), nullptr);
  EXPECT_EQ(both->meta.controller()->name, "a-set");
  EXPECT_EQ(decode(set)->meta.owners[0].uid.view().data(),
            both->meta.controller()->uid.view().data());
}

TEST(Arena, SharesFromTheSecondTimeOn) {
  const auto pool = std::make_shared<Pool>();
  const auto keep = [&](std::string_view text) {
    auto arena = std::make_unique<Arena>();
    arena->usePool(pool);
    const Str kept = arena->perhapsShared(text);
    return std::pair(std::move(arena), kept);
  };
  const auto [first_arena, first] = keep("text");
  const auto [second_arena, second] = keep("text");
  const auto [third_arena, third] = keep("text");
  EXPECT_EQ(first.view(), "text");
  EXPECT_NE(first.view().data(), second.view().data());
  EXPECT_EQ(second.view().data(), third.view().data());
  EXPECT_EQ(keep("").second.view(), "");
}

TEST(Decoder, KeepsTheAnnotationsThatAreWanted) {
  Decoder decoder;
  decoder.keepAnnotations({"mine/", "exact"});
  std::string json =
      R"({"metadata":{"name":"p","annotations":{"mine/a":"1","yours/b":"2","exact":"3"}}})";
  const ObjectPtr pod = *decoder.decode(Pod::kind(), json);
  ASSERT_EQ(pod->meta.annotations.size(), 2u);
  EXPECT_EQ(find(pod->meta.annotations, "exact"), "3");
}

TEST(Decoder, KeepsTheLabelsThatAreWanted) {
  Decoder decoder;
  decoder.keepLabels({"mine/"});
  std::string json = R"({"metadata":{"name":"p","labels":{"mine/a":"1","yours/b":"2"}}})";
  const ObjectPtr pod = *decoder.decode(Pod::kind(), json);
  ASSERT_EQ(pod->meta.labels.size(), 1u);
  EXPECT_EQ(find(pod->meta.labels, "mine/a"), "1");
}

std::string withLabels(int count) {
  std::string json = R"({"metadata":{"name":"p","labels":{"first":"1")";
  for (int i = 0; i < count; ++i) json += fmt::format(R"(,"key{0}":"value{0}")", i);
  return json + "}}}";
}

TEST(Decoder, KeepsNoMoreOfAnObjectThanItMay) {
  Decoder decoder;
  decoder.keepAtMost(64 << 10);
  for (const int labels : {0, 100, 1000}) {
    std::string json = withLabels(labels);
    const Result<ObjectPtr> pod = decoder.decode(Pod::kind(), json);
    ASSERT_TRUE(pod) << pod.error().message();
    EXPECT_EQ((*pod)->meta.labels.size(), static_cast<std::size_t>(labels) + 1);
    EXPECT_EQ(find((*pod)->meta.labels, "first"), "1");
    if (labels > 0) {
      EXPECT_EQ(find((*pod)->meta.labels, fmt::format("key{}", labels - 1)),
                fmt::format("value{}", labels - 1));
    }
  }
  std::string json = withLabels(10'000);
  const Result<ObjectPtr> huge = decoder.decode(Pod::kind(), json);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().message(),
            "decoding a Pod p: more than the 65536 bytes that are kept of an object");
  std::string small = withLabels(0);
  EXPECT_TRUE(decoder.decode(Pod::kind(), small));
}

// Pods with a little and with much text in turns: what is not shared does not refer to what is
// gone.
TEST(Decoder, SharesOnlyALittleOfEachObject) {
  Decoder decoder;
  std::vector<ObjectPtr> kept;
  for (int i = 0; i < 50; ++i) {
    std::string large = withLabels(500);
    (void)decoder.decode(Pod::kind(), large);
    std::string small = withLabels(5);
    kept.push_back(*decoder.decode(Pod::kind(), small));
    EXPECT_EQ(kept.back()->meta.labels.begin(), kept.front()->meta.labels.begin());
  }
  for (const ObjectPtr& pod : kept) EXPECT_EQ(find(pod->meta.labels, "key4"), "value4");
}

TEST(Pod, ReadsAnyAmountThatAServerAccepts) {
  const auto pod = [](const char* cpu, const char* memory) {
    return decoded<Pod>(fmt::format(
        R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"a","resources":)"
        R"({{"limits":{{"cpu":{},"memory":{}}}}}}}]}}}})",
        cpu, memory));
  };
  const auto limits = [&](const char* cpu, const char* memory) {
    return pod(cpu, memory)->containers[0].limits;
  };
  EXPECT_EQ(limits("1", "1e30").memoryBytes(), Amounts::kMostMemory);
  EXPECT_EQ(limits("\"1e30\"", "1").cpu(), Amounts::kMostCpu);
  EXPECT_EQ(limits("\"9223372036854775807\"", "1").cpu(), Amounts::kMostCpu);
  EXPECT_EQ(limits("\"-1e30\"", "-1e30").cpu(), -Amounts::kMostCpu);
  EXPECT_EQ(limits("\"0.0000001n\"", "1").cpu(), Millicores(1));
  EXPECT_TRUE(pod("1", "1e30")->saturated());
  EXPECT_TRUE(pod("\"1e30\"", "1")->saturated());
  EXPECT_FALSE(pod("\"1\"", "\"512Ti\"")->saturated());
}

TEST(ObjectMeta, ReadsTimesThatAreFarAwayAsTheNearest) {
  const auto deleted = [](std::string_view time) {
    return decoded<Pod>(
               fmt::format(R"({{"metadata":{{"name":"p","deletionTimestamp":"{}"}}}})", time))
        ->meta;
  };
  EXPECT_EQ(deleted("2311-06-23T12:00:00Z").deleted, kLatestTime);
  EXPECT_TRUE(deleted("2311-06-23T12:00:00Z").beingDeleted());
  EXPECT_EQ(deleted("1734-06-23T12:00:00Z").deleted, kEarliestTime);
}

TEST(WatchReader, PassesOverAnObjectThatItCannotRead) {
  Decoder decoder;
  std::vector<std::string> seen;
  WatchReader reader(Pod::kind(), decoder, [&](const WatchEvent& event) {
    seen.push_back(fmt::format("{}:{}:{}", static_cast<int>(event.type), event.resource_version,
                               event.object        ? event.object->meta.name.string()
                               : event.passed_over ? "!" + event.passed_over->name
                                                   : ""));
  });
  const auto event = [](std::string_view type, std::string_view name, int version,
                        std::string_view rest) {
    return fmt::format(
        R"({{"type":"{}","object":{{"metadata":{{"name":"{}","resourceVersion":"{}"{}}}}}}})", type,
        name, version, rest);
  };
  EXPECT_TRUE(reader.receive(event("ADDED", "a", 1, R"(,"labels":{"x":[1]})") +
                             event("MODIFIED", "b", 2, R"(,"generation":1e400)") +
                             event("DELETED", "c", 3, R"(,"deletionTimestamp":"soon")") +
                             event("ADDED", "good", 4, "")));
  EXPECT_EQ(seen, (std::vector<std::string>{"0:1:!a", "1:2:!b", "2:3:!c", "0:4:good"}));
}

TEST(Pod, KnowsNodesThatCannotResize) {
  EXPECT_FALSE(decoded<Pod>(R"({"metadata":{"name":"p"},"status":{"containerStatuses":[
      {"name":"a","state":{"waiting":{}}},{"name":"b","state":{"running":{}}}]}})")
                   ->nodeSupportsResize());
  EXPECT_TRUE(decoded<Pod>(R"({"metadata":{"name":"p"},"status":{"containerStatuses":[
      {"name":"b","resources":{},"state":{"running":{}}}]}})")
                  ->nodeSupportsResize());
}

TEST(Kinds, DecodeTheirFields) {
  const auto node = decoded<Node>(R"({"metadata":{"name":"n"},"spec":{"unschedulable":true},
    "status":{"capacity":{"cpu":"4","memory":"8Gi"},"allocatable":{"cpu":"3800m"},
    "conditions":[{"status":"False","type":"MemoryPressure"},{"status":"True","type":"Ready"},
                  {"type":"PIDPressure","status":"True"},{"type":"DiskPressure"}],
    "addresses":[{"type":"Hostname","address":"n"},{"address":"10.0.0.1","type":"InternalIP"}],
    "nodeInfo":{"kubeletVersion":"v1.35.4","operatingSystem":"linux"}}})");
  EXPECT_EQ(node->capacity.cpu(), 4000_m);
  EXPECT_EQ(node->allocatable.cpu(), 3800_m);
  EXPECT_TRUE(node->ready && node->unschedulable);
  EXPECT_TRUE(node->pid_pressure);
  EXPECT_FALSE(node->memory_pressure || node->disk_pressure);
  EXPECT_EQ(node->internal_ip, "10.0.0.1");
  EXPECT_EQ(node->kubelet_version, "v1.35.4");

  const auto lease = decoded<Lease>(R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"a",
    "leaseDurationSeconds":15,"leaseTransitions":3,"renewTime":"2026-01-01T00:00:00.500000Z"}})");
  EXPECT_EQ(lease->holder, "a");
  EXPECT_EQ(lease->duration_seconds, 15);
  EXPECT_EQ(lease->transitions, 3);
  EXPECT_EQ(formatRfc3339(lease->renewed, TimePrecision::kMicros), "2026-01-01T00:00:00.500000Z");

  const auto range = decoded<LimitRange>(R"({"metadata":{"name":"l"},"spec":{"limits":[
    {"type":"Container","max":{"cpu":"2"},"min":{"cpu":0.1},
     "maxLimitRequestRatio":{"cpu":"4"}}]}})");
  EXPECT_EQ(range->limits[0].max.cpu(), 2000_m);
  EXPECT_EQ(range->limits[0].min.cpu(), 100_m);
  EXPECT_EQ(range->limits[0].max_limit_request_ratio.cpu(), 4000_m);

  const auto quota = decoded<ResourceQuota>(R"({"metadata":{"name":"q"},
    "spec":{"hard":{"limits.cpu":"4"},"scopes":["NotTerminating"]},
    "status":{"hard":{"limits.cpu":"4"},"used":{"limits.cpu":"1500m"}}})");
  EXPECT_EQ(find(quota->status_used, "limits.cpu"), "1500m");
  EXPECT_EQ(quota->scopes[0], "NotTerminating");

  const auto hpa = decoded<HorizontalPodAutoscaler>(R"({"metadata":{"name":"h"},"spec":{
    "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
    "metrics":[{"type":"Resource","resource":{"name":"cpu","target":
    {"type":"Utilization","averageUtilization":60}}}]}})");
  EXPECT_EQ(hpa->target.name, "web");
  EXPECT_EQ(hpa->metrics[0].average_utilization, 60);
  EXPECT_TRUE(hpa->scalesOnCpu());

  const auto map = decoded<ConfigMap>(R"({"metadata":{"name":"c"},"data":{"a":"\u00e9\n"}})");
  EXPECT_EQ(find(map->data, "a"), "\xC3\xA9\n");
  EXPECT_EQ(decoded<Namespace>(R"({"metadata":{"name":"n"},"status":{"phase":"Active"}})")->phase,
            "Active");
  const auto event = decoded<Event>(R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Pod",
    "name":"p","uid":"u"},"reason":"R","message":"M","type":"Warning","count":4,
    "source":{"component":"c"}})");
  EXPECT_EQ(event->involved_uid, "u");
  EXPECT_EQ(event->count, 4);
}

TEST(VerticalPodAutoscaler, SaysWhoseCpuItMayChange) {
  const auto vpa = [](const std::string& spec) {
    return decoded<VerticalPodAutoscaler>(R"({"metadata":{"name":"v"},"spec":)" + spec + "}");
  };
  EXPECT_TRUE(vpa("{}")->activeOnCpu("a"));
  EXPECT_FALSE(vpa(R"({"updatePolicy":{"updateMode":"Off"}})")->activeOnCpu("a"));
  EXPECT_FALSE(vpa(R"({"updatePolicy":{"updateMode":"Initial"}})")->activeOnCpu("a"));
  const auto policies = vpa(R"({"resourcePolicy":{"containerPolicies":[
    {"containerName":"*","mode":"Off"},
    {"containerName":"a","controlledResources":["memory"]},
    {"containerName":"b","controlledResources":["cpu"]}]}})");
  EXPECT_FALSE(policies->activeOnCpu("a"));
  EXPECT_TRUE(policies->activeOnCpu("b"));
  EXPECT_FALSE(policies->activeOnCpu("other"));
}

TEST(LabelSelector, MatchesAsTheApiDoes) {
  const auto matches = [](const std::string& selector, const std::string& labels) {
    const auto pdb = decoded<PodDisruptionBudget>(R"({"metadata":{"name":"p","labels":)" + labels +
                                                  R"(},"spec":{"selector":)" + selector + "}}");
    return pdb->selector.matches(pdb->meta.labels);
  };
  EXPECT_FALSE(matches("null", R"({"a":"1"})"));
  EXPECT_TRUE(matches("{}", R"({"a":"1"})"));
  EXPECT_TRUE(matches(R"({"matchLabels":{"a":"1"}})", R"({"a":"1","b":"2"})"));
  EXPECT_FALSE(matches(R"({"matchLabels":{"a":"1"}})", R"({"a":"2"})"));
  const auto expression = [&](const std::string& text, const std::string& labels) {
    return matches(R"({"matchExpressions":[)" + text + "]}", labels);
  };
  const std::string in = R"({"key":"a","operator":"In","values":["1","2"]})";
  EXPECT_TRUE(expression(in, R"({"a":"2"})"));
  EXPECT_FALSE(expression(in, R"({"a":"3"})"));
  EXPECT_FALSE(expression(in, "{}"));
  const std::string not_in = R"({"key":"a","operator":"NotIn","values":["1"]})";
  EXPECT_TRUE(expression(not_in, "{}"));
  EXPECT_FALSE(expression(not_in, R"({"a":"1"})"));
  EXPECT_TRUE(expression(R"({"key":"a","operator":"Exists"})", R"({"a":""})"));
  EXPECT_FALSE(expression(R"({"key":"a","operator":"DoesNotExist"})", R"({"a":""})"));
}

// A kind that the runtime does not know.
struct Widget : Object {
  using Object::Object;
  Str colour;
  static const Kind& kind() {
    static const Kind kKind = makeKind<Widget>(
        {.group = "example.com", .version = "v1", .plural = "widgets", .name = "Widget"},
        [](Widget& widget, std::string_view key, JsonCursor value) {
          if (key == "spec") {
            value.members([&](std::string_view name, JsonCursor field) {
              if (name == "colour") widget.colour = widget.arena.text(field.text());
            });
          }
        });
    return kKind;
  }
};

TEST(Kind, DescribesACustomResourceFromOutside) {
  EXPECT_EQ(decoded<Widget>(R"({"spec":{"colour":"red"},"metadata":{"name":"w"}})")->colour, "red");
  EXPECT_EQ(Widget::kind().path("ns", "a b", "status"),
            "/apis/example.com/v1/namespaces/ns/widgets/a%20b/status");
  EXPECT_EQ(Widget::kind().apiVersion(), "example.com/v1");
  EXPECT_EQ(Pod::kind().path("", "", ""), "/api/v1/pods");
  EXPECT_EQ(Node::kind().path("ignored", "n"), "/api/v1/nodes/n");
}

// --- streams ---

std::string describe(const WatchEvent& event) {
  std::string text = std::to_string(static_cast<int>(event.type)) + ":" + event.resource_version;
  if (event.object) text += ":" + objectKey(event.object->meta);
  if (event.initial_events_end) text += ":end";
  if (event.type == WatchEvent::Type::kError) text += ":" + event.error.describe();
  return text;
}

struct Read {
  std::vector<std::string> events;
  std::string error;
  bool operator==(const Read&) const = default;
};

Read readWatch(const std::vector<std::string>& chunks) {
  Read read;
  Decoder decoder;
  WatchReader reader(Pod::kind(), decoder,
                     [&](WatchEvent event) { read.events.push_back(describe(event)); });
  for (const std::string& chunk : chunks) {
    if (Result<void> done = reader.receive(chunk); !done) {
      read.error = done.error().message();
      return read;
    }
  }
  if (Result<void> done = reader.finish(); !done) read.error = done.error().message();
  return read;
}

TEST(WatchReader, ReadsARecordedStream) {
  const Read read = readWatch({readFile("test/captures/kube/watch.ndjson")});
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.events,
            (std::vector<std::string>{"0:101:shop/a", "0:102:shop/\xC3\xA9\"b", "1:103:shop/a",
                                      "3:104:end", "2:105:shop/a", "3:150",
                                      "4::410 Expired: too old resource version: 1 (2)"}));
}

RC_GTEST_PROP(WatchReader, AnyChunkingGivesTheSameEvents, ()) {
  static const std::string kStream = readFile("test/captures/kube/watch.ndjson");
  std::vector<std::string> chunks;
  std::size_t at = 0;
  while (at < kStream.size()) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 200);
    chunks.push_back(kStream.substr(at, size));
    at += size;
  }
  RC_ASSERT(readWatch(chunks) == readWatch({kStream}));
}

TEST(WatchReader, EveryByteAloneGivesTheSameEvents) {
  const std::string stream = readFile("test/captures/kube/watch.ndjson");
  std::vector<std::string> bytes;
  for (const char c : stream) bytes.emplace_back(1, c);
  EXPECT_EQ(readWatch(bytes), readWatch({stream}));
}

TEST(WatchReader, FindsTheObjectEvenBeforeTheType) {
  EXPECT_EQ(
      readWatch({R"({"object":{"metadata":{"name":"p","resourceVersion":"5"}},"type":"ADDED"})"})
          .events,
      std::vector<std::string>{"0:5:p"});
}

TEST(WatchReader, RefusesWhatIsNoEvent) {
  const auto error = [](const std::string& text) { return readWatch({text}).error; };
  EXPECT_NE(error("<html>").find("unexpected byte 0x3c"), std::string::npos);
  EXPECT_NE(error(R"({"type":"WHAT","object":{}})").find("unknown type of event \"WHAT\""),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"ADDED"})").find("object is missing"), std::string::npos);
  EXPECT_NE(error(R"({"type":"ADDED","object":{"metadata":{"name":"x"}}})").find("resourceVersion"),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})").find("name"),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"ADDED","object":{"metadata":{)").find("ended inside"),
            std::string::npos);
  EXPECT_NE(error(R"(}{)"), "");
  EXPECT_NE(error(R"("text")"), "");
}

// Flipping, dropping and doubling bytes: an error or other events, never a crash.
RC_GTEST_PROP(WatchReader, SurvivesDamage, ()) {
  std::string stream = readFile("test/captures/kube/watch.ndjson");
  const int damages = *rc::gen::inRange(1, 5);
  for (int i = 0; i < damages; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, stream.size());
    stream[at] = *rc::gen::arbitrary<char>();
  }
  const Read read = readWatch({stream});
  RC_ASSERT(read.events.size() <= 7u);
}

std::string listOf(const std::vector<std::string>& items, const std::string& metadata) {
  std::string text =
      R"({"kind":"PodList","apiVersion":"v1","metadata":)" + metadata + R"(,"items":[)";
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : ",\n ") + std::string(R"({"metadata":{"name":")") + items[i] + R"("}})";
  }
  return text + "]}\n";
}

RC_GTEST_PROP(ListReader, AnyChunkingGivesTheSameList, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 6);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("p" + std::to_string(i));
  const std::string text =
      listOf(names, R"({"resourceVersion":"77","continue":"tok","items":[{}]})");
  std::vector<std::string> seen;
  Decoder decoder;
  ListReader reader(Pod::kind(), decoder,
                    [&](ObjectPtr pod) { seen.push_back(pod->meta.name.string()); });
  std::size_t at = 0;
  while (at < text.size()) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 40);
    RC_ASSERT(reader.receive(std::string_view(text).substr(at, size)).has_value());
    at += size;
  }
  const Result<ListPosition> end = reader.finish();
  RC_ASSERT(end.has_value());
  RC_ASSERT(end->resource_version == "77");
  RC_ASSERT(end->next == "tok");
  RC_ASSERT(seen == names);
}

TEST(ListReader, RefusesHalfAListAndGarbage) {
  for (const char* text : {"", "{", R"({"items":[{"metadata":{"name":"a"}},)", R"({"items":[1]})",
                           R"({"items":["a"]})", "nonsense", R"({"metadata":{},"items":[]})",
                           R"({"items":[]}{"items":[]})"}) {
    Decoder decoder;
    ListReader reader(Pod::kind(), decoder, [](const ObjectPtr&) {});
    const bool good = reader.receive(text).has_value() && reader.finish().has_value();
    EXPECT_FALSE(good) << text;
  }
}

TEST(JsonSplitter, RefusesAnObjectBeyondItsBound) {
  JsonSplitter splitter(JsonSplitter::Mode::kSequence, 100);
  const auto ignore = [](std::string&) { return true; };
  EXPECT_TRUE(splitter.push("{\"a\":\"" + std::string(80, 'x') + "\"}", ignore));
  EXPECT_TRUE(splitter.push("{\"a\":\"", ignore));
  const Result<void> result = splitter.push(std::string(200, 'x'), ignore);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find("larger than 100 bytes"), std::string::npos);
}

}  // namespace
}  // namespace mbcas::kube
