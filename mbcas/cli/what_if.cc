#include "mbcas/cli/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "mbcas/base/json_writer.h"
#include "mbcas/control/intervention.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {
namespace {

using control::Consumer;
using control::Intervention;
using kube::JsonCursor;

// The headroom of a free pod's limit above its use.
constexpr double kHeadroom = 1.25;
// An award this close to the demand leaves nothing to be wished for.
constexpr double kAsGoodAsAll = 0.98;

double numberOf(JsonCursor value, double least, double most) {
  const std::string_view text = value.scalar();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= least) ||
      !(number <= most)) {
    value.fail(fmt::format("not a number from {:g} to {:g}", least, most));
    return least;
  }
  return number;
}

double cpuOf(JsonCursor value) {
  return numberOf(value, 0, kMostWhatIfCpu);
}

void readPod(WhatIfPod& pod, std::string_view key, JsonCursor value) {
  if (key == "name") pod.name = value.text();
  if (key == "managed") pod.managed = value.boolean();
  if (key == "weight") pod.weight = numberOf(value, 1e-3, kMostWhatIfWeight);
  if (key == "factor") pod.factor = numberOf(value, 1e-3, kMostWhatIfFactor);
  if (key == "demand") pod.demand = cpuOf(value);
  if (key == "request") pod.request = cpuOf(value);
  if (key == "declared") pod.declared = cpuOf(value);
  if (key == "floor") pod.floor = cpuOf(value);
  if (key == "ceiling" && !value.isNull()) pod.ceiling = cpuOf(value);
}

Consumer consumerOf(const WhatIfPod& pod, double capacity) {
  Consumer consumer;
  consumer.cgroup.weight = pod.weight;
  consumer.cgroup.demand = pod.demand / 1000;
  consumer.managed = pod.managed;
  if (!pod.managed) return consumer;
  const double ceiling = std::max(pod.ceiling.value_or(capacity), pod.request);
  const double declared = std::min(pod.declared, ceiling);
  consumer.factor = pod.factor;
  consumer.request = pod.request / 1000;
  consumer.declared = declared / 1000;
  consumer.floor = std::min(pod.floor, ceiling) / 1000;
  consumer.free = std::min(std::max({declared, pod.floor, kHeadroom * pod.demand}), ceiling) / 1000;
  consumer.peak = consumer.cgroup.demand;
  consumer.may_lower = consumer.floor < consumer.declared;
  return consumer;
}

}  // namespace

Result<WhatIf> parseWhatIf(std::string json) {
  WhatIf question;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(json, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "capacity") question.capacity = cpuOf(value);
      if (key != "pods") return;
      value.elements([&](JsonCursor element) {
        if (question.pods.size() == kMostWhatIfPods) {
          return element.fail(fmt::format("more than {} pods", kMostWhatIfPods));
        }
        WhatIfPod& pod = question.pods.emplace_back();
        element.members(
            [&](std::string_view name, JsonCursor field) { readPod(pod, name, field); });
      });
    });
  });
  if (!parsed) return failure(parsed.error());
  return question;
}

WhatIfAnswer answer(const WhatIf& question) {
  const double capacity = question.capacity / 1000;
  std::vector<Consumer> consumers;
  consumers.reserve(question.pods.size());
  for (const WhatIfPod& pod : question.pods) {
    consumers.push_back(consumerOf(pod, question.capacity));
  }
  control::Intervener intervener;
  const Intervention unhelped = intervener.decide(capacity, consumers, false);
  for (std::size_t i = 0; i < consumers.size(); ++i) {
    const control::Outcome& outcome = unhelped.consumers[i];
    Consumer& consumer = consumers[i];
    if (consumer.managed && outcome.by_kernel < kAsGoodAsAll * outcome.award) {
      consumer.claim = consumer.cgroup.demand;
    }
  }
  const Intervention helped = intervener.decide(capacity, consumers, false);
  WhatIfAnswer answer;
  for (std::size_t i = 0; i < consumers.size(); ++i) {
    const Consumer& consumer = consumers[i];
    const control::Outcome& outcome = helped.consumers[i];
    WhatIfOutcome& told = answer.pods.emplace_back();
    told.by_kernel = outcome.by_kernel * 1000;
    told.award = outcome.award * 1000;
    told.bound = outcome.bound;
    told.helped = outcome.beneficiary && helped.binds;
    if (!consumer.managed) continue;
    if (std::isfinite(outcome.limit)) told.limit = outcome.limit * 1000;
    const double most = std::min({consumer.cgroup.demand, consumer.free, capacity});
    if (outcome.award <= 0 || outcome.award >= kAsGoodAsAll * most) continue;
    answer.price =
        std::max(answer.price, consumer.cgroup.weight * consumer.factor / (outcome.award * 1000));
  }
  return answer;
}

std::string whatIfJson(const WhatIfAnswer& answer) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("price").value(answer.price);
  json.key("pods").beginArray();
  for (const WhatIfOutcome& pod : answer.pods) {
    json.beginObject();
    json.key("byKernel").value(std::llround(pod.by_kernel));
    json.key("award").value(std::llround(pod.award));
    json.key("bound").value(pod.bound);
    json.key("helped").value(pod.helped);
    json.key("limit");
    if (pod.limit) {
      json.value(std::llround(*pod.limit));
    } else {
      json.null();
    }
    json.endObject();
  }
  json.endArray().endObject();
  return out;
}

}  // namespace mbcas::cli
