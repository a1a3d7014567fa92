#include "mbcas/podallocation/pod_allocation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "mbcas/base/time.h"

namespace mbcas::podallocation {
namespace {

using namespace literals;
using Ptr = std::shared_ptr<const PodAllocation>;

std::string golden(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream("test/golden/podallocation/" + file).rdbuf();
  std::string content = text.str();
  if (content.ends_with('\n')) content.pop_back();
  return content;
}

Ptr decoded(const std::string& json) {
  Result<Ptr> object = kube::decodeObject<PodAllocation>(json);
  if (!object) {
    ADD_FAILURE() << object.error().message() << " in " << json;
    return nullptr;
  }
  return *object;
}

std::string errorOf(const std::string& json) {
  const Result<Ptr> object = kube::decodeObject<PodAllocation>(json);
  return object ? "" : object.error().message();
}

WallTime at(std::string_view text) {
  return *parseRfc3339(text);
}

// A controller keeps one for each pod of the cluster.
TEST(PodAllocation, KeepsATextOnceThatStandsInSeveralPlaces) {
  const Ptr read = decoded(R"({"metadata":{"name":"a-uid","ownerReferences":[
      {"kind":"Pod","name":"web-1","uid":"a-uid"}]},
      "spec":{"podName":"web-1","reason":"uses 100m"},"status":{"reason":"uses 100m"}})");
  EXPECT_EQ(read->pod_name, "web-1");
  EXPECT_EQ(read->pod_name.view().data(), read->meta.owners[0].name.view().data());
  EXPECT_EQ(read->meta.owners[0].uid, "a-uid");
  EXPECT_EQ(read->meta.owners[0].uid.view().data(), read->meta.name.view().data());
  EXPECT_EQ(read->status_reason, "uses 100m");
  EXPECT_EQ(read->status_reason.view().data(), read->reason.view().data());
  const Ptr apart = decoded(R"({"metadata":{"name":"a-uid","ownerReferences":[
      {"kind":"Pod","name":"web-2","uid":"b-uid"}]},
      "spec":{"podName":"web-1","reason":"uses 100m"},"status":{"reason":"waits"}})");
  EXPECT_EQ(apart->pod_name, "web-1");
  EXPECT_EQ(apart->meta.owners[0].name, "web-2");
  EXPECT_EQ(apart->meta.owners[0].uid, "b-uid");
  EXPECT_EQ(apart->status_reason, "waits");
}

TEST(PodAllocation, EveryPhaseHasItsName) {
  for (const Phase phase : {Phase::kPending, Phase::kApplied, Phase::kClamped, Phase::kRecommended,
                            Phase::kLeftAlone, Phase::kFailed}) {
    const auto read = decoded(fmt::format(R"({{"metadata":{{"name":"u","namespace":"n"}},
        "spec":{{"namespace":"n","podName":"p","desiredCPULimit":"1"}},
        "status":{{"phase":"{}"}}}})",
                                          name(phase)));
    EXPECT_EQ(read->phase, phase) << name(phase);
  }
  // Of a later version, or of none: no reason to refuse the object.
  EXPECT_EQ(
      decoded(R"({"metadata":{"name":"u","namespace":"n"},"status":{"phase":"Done"}})")->phase,
      Phase::kUnset);
}

TEST(PodAllocation, ReadsEveryField) {
  const Ptr read = decoded(golden("object.json"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->meta.namespace_, "shop");
  EXPECT_EQ(read->specValue(), (Spec{.name_space = "shop",
                                     .pod_name = "web-7d4b9c-x2x8k",
                                     .node = "node-1",
                                     .desired = 1800_m,
                                     .containers = {{"server", 1500_m}, {"proxy", 300_m}},
                                     .wanted = 2000_m,
                                     .reason = "throttled 120 ms/s at 1000m"}));
  EXPECT_EQ(read->statusValue(),
            (Status{.phase = Phase::kApplied,
                    .observed_generation = 4,
                    .observed_desired = 1500_m,
                    .applied = 1500_m,
                    .reason = "in force, 1 s after it was sent",
                    .last_applied = at("2026-02-01T10:05:00Z"),
                    .last_attempt = at("2026-02-01T10:04:59Z"),
                    .bounds = Bounds{.managed = true,
                                     .floor = 500_m,
                                     .ceiling = 1500_m,
                                     .start = 1200_m,
                                     .weight = 1.25,
                                     .reason = "LimitRange default: at most 1500m"},
                    .conditions = {{.type = "Clamped",
                                    .status = ConditionStatus::kTrue,
                                    .reason = "Ceiling",
                                    .message = "1800m was desired, the ceiling is 1500m",
                                    .observed_generation = 4,
                                    .last_transition = at("2026-02-01T10:04:58Z")}}}));
}

TEST(PodAllocation, WritesWhatItRead) {
  const Ptr read = decoded(golden("object.json"));
  ASSERT_TRUE(read);
  const Spec spec = read->specValue();
  EXPECT_EQ(applySpec({.name = spec.pod_name, .uid = read->meta.name}, spec),
            golden("spec_apply.json"));
  EXPECT_EQ(applyStatus(read->meta, read->statusValue()), golden("status_apply.json"));
}

TEST(PodAllocation, AbsentIsEmpty) {
  for (const char* json :
       {R"({"metadata":{"name":"a"}})", R"({"metadata":{"name":"a"},"spec":{},"status":{}})",
        R"({"metadata":{"name":"a"},"spec":null,"status":{"bounds":null,"conditions":null,
            "appliedCPULimit":null}})"}) {
    const Ptr read = decoded(json);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->specValue(), Spec{});
    EXPECT_EQ(read->statusValue(), Status{});
    EXPECT_EQ(read->bounds(), nullptr);
  }
  EXPECT_TRUE(decoded(R"({"metadata":{"name":"a"},"status":{"bounds":{}}})")->bounds());
}

TEST(PodAllocation, RefusesNonsense) {
  const auto spec = [](const std::string& member) {
    return errorOf(R"({"metadata":{"name":"a"},"spec":{)" + member + "}}");
  };
  EXPECT_NE(spec(R"("desiredCPULimit":"1x")").find("spec.desiredCPULimit: "), std::string::npos);
  EXPECT_NE(spec(R"("desiredCPULimit":{})"), "");
  EXPECT_NE(spec(R"("containers":{})"), "");
  EXPECT_NE(spec(R"("containers":[{"desiredCPULimit":"1x"}])")
                .find("spec.containers[0].desiredCPULimit: "),
            std::string::npos);
  const auto weight = [](const std::string& value) {
    return errorOf(R"({"metadata":{"name":"a"},"status":{"bounds":{"weight":)" + value + "}}}");
  };
  EXPECT_EQ(weight("0.5"), "");
  EXPECT_NE(weight("-1"), "");
  EXPECT_NE(weight("1e999"), "");
  EXPECT_NE(weight("\"nan\""), "");
  EXPECT_NE(weight("\"1 \""), "");
}

TEST(PodAllocation, NeverWritesBackWhatIsNotKnownExactly) {
  for (const char* cpu : {"1e30", "-1e30", "9223372036854775807"}) {
    EXPECT_NE(errorOf(fmt::format(
                  R"({{"metadata":{{"name":"a"}},"spec":{{"desiredCPULimit":"{}"}}}})", cpu)),
              "");
  }
  const Ptr read = decoded(
      R"({"metadata":{"name":"a"},"status":{"lastAppliedTime":"2311-01-01T00:00:00Z",
      "lastAttemptTime":"0001-01-01T00:00:00Z","conditions":[{"type":"Clamped","status":"True",
      "lastTransitionTime":"9999-01-01T00:00:00Z"}]}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->statusValue().last_applied, WallTime{});
  EXPECT_EQ(read->statusValue().last_attempt, WallTime{});
  EXPECT_EQ(read->statusValue().conditions[0].last_transition, WallTime{});
}

TEST(PodAllocation, CutsLongReasonsBetweenCharacters) {
  Spec spec{.name_space = "n", .pod_name = "p", .node = "x", .desired = 10_m};
  const auto reasonLength = [&] {
    const Ptr read = decoded(applySpec({.name = "p", .uid = "u"}, spec));
    return read ? read->reason.view().size() : 0;
  };
  for (int i = 0; i < 300; ++i) spec.reason += "\u00e4";
  EXPECT_EQ(reasonLength(), 2 * kLongestReason);
  spec.reason.assign(kLongestReason, 'x');
  EXPECT_EQ(reasonLength(), kLongestReason);
  spec.reason += 'x';
  EXPECT_EQ(reasonLength(), kLongestReason);
}

TEST(Status, ConditionsKeepTheTimeOfTheirTransition) {
  Status status;
  const WallTime early = at("2026-01-01T00:00:00Z");
  const WallTime late = at("2026-01-01T00:01:00Z");
  status.setCondition({.type = "Clamped",
                       .status = ConditionStatus::kTrue,
                       .reason = "Floor",
                       .last_transition = early});
  status.setCondition({.type = "Clamped",
                       .status = ConditionStatus::kTrue,
                       .reason = "Ceiling",
                       .last_transition = late});
  ASSERT_EQ(status.conditions.size(), 1u);
  EXPECT_EQ(status.condition(kClamped)->reason, "Ceiling");
  EXPECT_EQ(status.condition(kClamped)->last_transition, early);
  status.setCondition({.type = "Clamped",
                       .status = ConditionStatus::kFalse,
                       .reason = "Within",
                       .last_transition = late});
  EXPECT_EQ(status.condition(kClamped)->last_transition, late);
  EXPECT_EQ(status.condition("Other"), nullptr);
}

Millicores anyCpu() {
  return Millicores(*rc::gen::inRange<std::int64_t>(0, 1'000'000));
}
std::optional<Millicores> maybeCpu() {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return anyCpu();
}
std::string anyText() {
  return *rc::gen::container<std::string>(rc::gen::inRange(' ', '~'));
}
WallTime anyTime() {
  return WallTime(std::chrono::seconds(*rc::gen::inRange(0, 2'000'000'000)));
}

RC_GTEST_PROP(PodAllocationRoundTrip, Spec, ()) {
  Spec spec{.name_space = anyText(),
            .pod_name = anyText(),
            .node = anyText(),
            .desired = anyCpu(),
            .wanted = maybeCpu(),
            .reason = anyText().substr(0, kLongestReason)};
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
    spec.containers.push_back({anyText(), anyCpu()});
  const Ptr read = decoded(applySpec({.name = "p", .uid = "u"}, spec));
  RC_ASSERT(read != nullptr);
  RC_ASSERT(read->specValue() == spec);
  RC_ASSERT(kube::find(read->meta.labels, kNodeLabel) == spec.node);
}

RC_GTEST_PROP(PodAllocationRoundTrip, Status, ()) {
  Status status{.phase = static_cast<Phase>(*rc::gen::inRange(0, 4)),
                .observed_generation = *rc::gen::inRange(0, 1000),
                .observed_desired = maybeCpu(),
                .applied = maybeCpu(),
                .reason = anyText(),
                .last_applied = anyTime(),
                .last_attempt = anyTime()};
  if (*rc::gen::arbitrary<bool>()) {
    status.bounds = Bounds{.managed = *rc::gen::arbitrary<bool>(),
                           .floor = maybeCpu(),
                           .ceiling = maybeCpu(),
                           .start = maybeCpu(),
                           .weight = *rc::gen::inRange(0, 5000) / 1000.0,
                           .reason = anyText()};
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    status.conditions.push_back({.type = anyText(),
                                 .status = static_cast<ConditionStatus>(*rc::gen::inRange(0, 3)),
                                 .reason = anyText(),
                                 .message = anyText(),
                                 .observed_generation = *rc::gen::inRange(0, 9),
                                 .last_transition = anyTime()});
  }
  const Ptr meta = decoded(R"({"metadata":{"name":"a","namespace":"n","uid":"u"}})");
  const Ptr read = decoded(applyStatus(meta->meta, status));
  RC_ASSERT(read != nullptr);
  RC_ASSERT(read->statusValue() == status);
}

TEST(Trimmed, KeepsWhatTheSchemaTakes) {
  Status status{.observed_desired = Millicores(std::int64_t{1} << 60),
                .applied = Millicores(999'999'999),
                .reason = std::string(2000, 'x')};
  status = trimmed(std::move(status));
  EXPECT_FALSE(status.observed_desired);
  EXPECT_EQ(status.applied, Millicores(999'999'999));
  EXPECT_EQ(status.reason.size(), kLongestStatusReason);
}

}  // namespace
}  // namespace mbcas::podallocation
