#include "mbcas/sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mbcas/base/json_writer.h"

namespace mbcas::sim {
namespace {

// What a simulation says is good to four digits; more would only be noise.
double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

void write(JsonWriter& json, std::string_view key, double value) {
  json.key(key).value(rounded(value));
}
void write(JsonWriter& json, std::string_view key, std::optional<double> value) {
  json.key(key);
  if (value) {
    json.value(rounded(*value));
  } else {
    json.null();
  }
}

// What never happened has no time.
std::optional<double> ended(std::optional<double> time) {
  return time && std::isinf(*time) ? std::nullopt : time;
}

void writePod(JsonWriter& json, const PodReport& pod) {
  json.beginObject();
  json.key("name").value(pod.name);
  json.key("managed").value(pod.managed);
  write(json, "offered", pod.offered);
  write(json, "used", pod.used);
  write(json, "throttled", pod.throttled);
  write(json, "reserved", pod.reserved);
  write(json, "reliefSeconds", pod.relief);
  write(json, "firstLimit", pod.first_limit);
  write(json, "lastLimit", pod.last_limit);
  write(json, "lowestLimit", pod.lowest_limit);
  write(json, "highestLimit", pod.highest_limit);
  write(json, "changesIn5Minutes", pod.changes);
  write(json, "p50Milliseconds", pod.p50);
  write(json, "p99Milliseconds", pod.p99);
  json.key("jobs").value(pod.jobs);
  json.key("refused").value(pod.refused);
  json.endObject();
}

void writeReport(JsonWriter& json, const Report& report, const Report* unlimited) {
  json.beginObject();
  json.key("scenario").value(report.scenario);
  json.key("policy").value(report.policy);
  json.key("seed").value(report.seed);
  write(json, "seconds", report.seconds);
  write(json, "used", report.used);
  if (unlimited != nullptr) write(json, "usedBesideUnlimited", usedBeside(report, *unlimited));
  write(json, "reserved", report.reserved);
  write(json, "slack", slackOf(report));
  write(json, "throttledFree", report.throttled_free);
  write(json, "throttledConstrained", report.throttled_constrained);
  write(json, "changesIn5Minutes", report.changes);
  write(json, "mostChangesIn5Minutes", report.most_changes);
  write(json, "reliefSeconds", report.relief);
  write(json, "reactionSeconds", ended(median(report.reactions)));
  write(json, "convergenceSeconds", ended(median(report.convergences)));
  json.key("episodes").value(static_cast<std::uint64_t>(report.reactions.size()));
  json.key("unanswered")
      .value(static_cast<std::uint64_t>(
          std::ranges::count_if(report.reactions, [](double time) { return std::isinf(time); })));
  write(json, "fairness", report.fairness);
  write(json, "jain", report.jain);
  write(json, "scarce", report.scarce);
  write(json, "p50Milliseconds", report.p50);
  write(json, "p99Milliseconds", report.p99);
  write(json, "p999Milliseconds", report.p999);
  json.key("pods").beginArray();
  for (const PodReport& pod : report.pods) writePod(json, pod);
  json.endArray().endObject();
}

// RFC 4180: quotes around what would break the line apart.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

void summariseRequests(Report& report) {
  if (report.requests.count() == 0) return;
  const auto milliseconds = [&](double share) {
    return static_cast<double>(report.requests.percentile(share).count()) * 1e-6;
  };
  report.p50 = milliseconds(0.5);
  report.p99 = milliseconds(0.99);
  report.p999 = milliseconds(0.999);
}

std::optional<double> slackOf(const Report& report) {
  if (report.reserved <= 0) return std::nullopt;
  return 1 - report.used / report.reserved;
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Report merged(std::span<const Report> nodes) {
  Report all = nodes.front();
  const auto count = static_cast<double>(nodes.size());
  for (const Report& node : nodes.subspan(1)) {
    all.used += node.used;
    all.reserved += node.reserved;
    all.throttled_free += node.throttled_free;
    all.throttled_constrained += node.throttled_constrained;
    all.changes += node.changes;
    all.most_changes = std::max(all.most_changes, node.most_changes);
    all.relief = std::max(all.relief, node.relief);
    all.fairness += node.fairness;
    all.jain += node.jain;
    all.scarce += node.scarce;
    all.requests.add(node.requests);
    all.held_back.add(node.held_back);
    const auto append = [](auto& to, const auto& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    append(all.reactions, node.reactions);
    append(all.convergences, node.convergences);
    append(all.pods, node.pods);
    append(all.window_use, node.window_use);
    append(all.window_most, node.window_most);
  }
  for (double* mean : {&all.throttled_free, &all.throttled_constrained, &all.changes, &all.fairness,
                       &all.jain, &all.scarce}) {
    *mean /= count;
  }
  summariseRequests(all);
  return all;
}

double usedBeside(const Report& report, const Report& unlimited) {
  double used = 0;
  double possible = 0;
  const std::size_t windows = std::min(report.window_use.size(), unlimited.window_use.size());
  for (std::size_t i = 0; i < windows; ++i) {
    used += std::min(report.window_use[i], unlimited.window_most[i]);
    possible += std::min(unlimited.window_use[i], unlimited.window_most[i]);
  }
  return possible > 0 ? used / possible : 1;
}

std::string toJson(std::span<const Report> reports) {
  std::string out;
  JsonWriter json(out);
  json.beginObject().key("reports").beginArray();
  for (const Report& report : reports) {
    const auto unlimited = std::ranges::find_if(reports, [&](const Report& other) {
      return other.policy == "unlimited" && other.scenario == report.scenario;
    });
    writeReport(json, report, unlimited == reports.end() ? nullptr : &*unlimited);
  }
  json.endArray().endObject();
  return out + '\n';
}

std::string toCsv(std::span<const Report> reports) {
  std::string out =
      "scenario,policy,pod,offered,used,throttled,reserved,reliefSeconds,firstLimit,lastLimit,"
      "lowestLimit,highestLimit,changesIn5Minutes,p50Milliseconds,p99Milliseconds,jobs,refused\n";
  const auto optional = [](std::optional<double> value) {
    return value ? fmt::format("{:.4g}", *value) : std::string();
  };
  for (const Report& report : reports) {
    for (const PodReport& pod : report.pods) {
      out += fmt::format(
          "{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:g},{:g},{:g},{:g},{:g},{:.2f},{},{},{},{}\n",
          field(report.scenario), field(report.policy), field(pod.name), pod.offered, pod.used,
          pod.throttled, pod.reserved, pod.relief, pod.first_limit, pod.last_limit,
          pod.lowest_limit, pod.highest_limit, pod.changes, optional(pod.p50), optional(pod.p99),
          pod.jobs, pod.refused);
    }
  }
  return out;
}

}  // namespace mbcas::sim
