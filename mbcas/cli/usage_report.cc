#include "mbcas/cli/usage_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/cli/words.h"
#include "mbcas/view/page.h"
#include "mbcas/view/text.h"

namespace mbcas::cli {
namespace {

constexpr double kStep = 1.05;
constexpr double kLongestGap = 15;      // seconds between two states that count as one course
constexpr Millicores kThrottled(20);    // ms/s from which a container counts as throttled
constexpr double kEnough = 60;          // seconds before anything is recommended
constexpr double kHeadroom = 1.15;      // of a request above the use
constexpr Millicores kLeastChange(50);  // that is worth a word
constexpr double kFar = 0.25;           // of the request

Millicores rounded(double millicores) {
  return Millicores(std::max<std::int64_t>(10, std::llround(std::ceil(millicores / 10)) * 10));
}

// The letters that Kubernetes makes random names of.
bool isRandom(std::string_view text) {
  return !text.empty() && text.find_first_not_of("bcdfghjklmnpqrstvwxz2456789") == text.npos;
}

double share(const ThrottledTime& time) {
  return time.seconds > 0 ? time.throttled / time.seconds : 0;
}

std::string hoursText(double seconds) {
  return fmt::format("{:.2f}", seconds / 3600);
}

std::string shareText(const ThrottledTime& time) {
  return time.seconds > 0 ? percentText(share(time)) : "-";
}

std::string signedText(Millicores amount) {
  return fmt::format("{}{}m", amount.count() > 0 ? "+" : "", amount.count());
}

// The tables of a report, for text and for HTML alike.
struct Section {
  std::string title;
  std::string text;
  std::vector<view::Page::Row> rows{};  // the first is the header; none: only the text
};

template <class Less>
std::vector<const ContainerReport*> chosen(
    const UsageReport& report, const std::function<bool(const ContainerReport&)>& wanted,
    Less less) {
  std::vector<const ContainerReport*> found;
  for (const ContainerReport& each : report.containers) {
    if (wanted(each)) found.push_back(&each);
  }
  // Equal ones keep the order of the report.
  std::ranges::sort(found, [&](const ContainerReport* a, const ContainerReport* b) {
    return less(*a, *b) || (!less(*b, *a) && a < b);
  });
  return found;
}

view::Page::Row rowOf(const ContainerReport& of, view::Page::Row more) {
  more.insert(more.begin(), {of.name_space.empty() ? "-" : of.name_space, of.workload, of.container,
                             fmt::format("{}", of.pods)});
  return more;
}

view::Page::Row header(view::Page::Row more) {
  more.insert(more.begin(), {"NAMESPACE", "WORKLOAD", "CONTAINER", "PODS"});
  return more;
}

Section requestsOf(const UsageReport& report) {
  const auto far = chosen(
      report, [](const ContainerReport& of) { return of.recommended.has_value(); },
      [](const ContainerReport& a, const ContainerReport& b) {
        return std::abs(a.requestChange().count()) > std::abs(b.requestChange().count());
      });
  Section section{"Requests far from use", ""};
  if (far.empty()) {
    section.text = "None: each request is near its use, or there was too little time to say.";
    return section;
  }
  Millicores less;
  Millicores more;
  section.rows.push_back(header({"REQUEST", "USE", "P95", "RECOMMENDED", "ALL PODS"}));
  for (const ContainerReport* const of : far) {
    (of->requestChange() < Millicores(0) ? less : more) += of->requestChange();
    section.rows.push_back(rowOf(*of, {cpuText(of->request), cpuText(of->mean), cpuText(of->p95),
                                       cpuText(of->recommended), signedText(of->requestChange())}));
  }
  section.text = fmt::format(
      "The scheduler reserves {:.2f} CPU that is not used, and {:.2f} CPU are used without being "
      "reserved. Recommended is 1.15 times the use that was not exceeded for 95% of the time.",
      static_cast<double>(-less.count()) / 1000, more.cores());
  return section;
}

Section throttlingOf(const UsageReport& report) {
  const auto throttled = [](const ContainerReport& of) {
    return of.declared_time.throttled + of.raised_time.throttled;
  };
  const auto found = chosen(
      report, [&](const ContainerReport& of) { return throttled(of) > 0; },
      [&](const ContainerReport& a, const ContainerReport& b) {
        return throttled(a) > throttled(b);
      });
  ThrottledTime before;
  ThrottledTime after;
  double avoidable = 0;
  for (const ContainerReport& of : report.containers) {
    before.seconds += of.declared_time.seconds;
    before.throttled += of.declared_time.throttled;
    after.seconds += of.raised_time.seconds;
    after.throttled += of.raised_time.throttled;
    avoidable += of.avoidable;
  }
  Section section{"Throttled pod-hours", ""};
  section.text = fmt::format(
      "Throttled for 20 ms of each second or more: {} pod-hours. With the declared limit {} of the "
      "time, with a higher one {} (measured). {} pod-hours would not have been throttled with the "
      "limits desired at the time (estimated).",
      hoursText(before.throttled + after.throttled), shareText(before), shareText(after),
      hoursText(avoidable));
  if (found.empty()) return section;
  section.rows.push_back(header({"POD-HOURS", "AS DECLARED", "RAISED", "AVOIDABLE"}));
  for (const ContainerReport* const of : found) {
    section.rows.push_back(rowOf(*of, {hoursText(throttled(*of)), shareText(of->declared_time),
                                       shareText(of->raised_time), hoursText(of->avoidable)}));
  }
  return section;
}

Section limitsOf(const UsageReport& report) {
  const auto found = chosen(
      report,
      [](const ContainerReport& of) {
        return of.declared && of.desired && *of.declared != *of.desired;
      },
      [](const ContainerReport& a, const ContainerReport& b) {
        return *a.desired - *a.declared > *b.desired - *b.declared;
      });
  Section section{"Limits", "No declared limit needs a change."};
  if (found.empty()) return section;
  section.text = "At the end, the largest among the pods. mbcas diff -o yaml makes patches of it.";
  section.rows.push_back(header({"DECLARED", "IN FORCE", "DESIRED"}));
  for (const ContainerReport* const of : found) {
    section.rows.push_back(
        rowOf(*of, {cpuText(of->declared), cpuText(of->limit), cpuText(of->desired)}));
  }
  return section;
}

Section quotasOf(const UsageReport& report) {
  Section section{"Quota", "No quota on CPU is known."};
  if (report.quotas.empty()) return section;
  section.text = "Short: less than a tenth is free.";
  section.rows.push_back({"NAMESPACE", "QUOTA", "RESOURCE", "HARD", "USED", "FREE", "IS"});
  for (const QuotaReport& quota : report.quotas) {
    const Millicores free = quota.hard - quota.used;
    section.rows.push_back({quota.name_space, quota.quota, quota.resource, cpuText(quota.hard),
                            cpuText(quota.used), cpuText(free),
                            free.count() * 10 < quota.hard.count() ? "short" : "free"});
  }
  return section;
}

Section namespacesOf(const UsageReport& report) {
  struct Sum {
    double use = 0;
    Millicores request;
    Millicores limit;
    double throttled = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ContainerReport& of : report.containers) {
    Sum& sum = sums[of.name_space];
    const auto pods = static_cast<std::int64_t>(of.pods);
    sum.use += static_cast<double>(of.mean.count() * pods);
    sum.request += Millicores(of.request.value_or(Millicores(0)).count() * pods);
    sum.limit += Millicores(of.limit.value_or(Millicores(0)).count() * pods);
    sum.throttled += of.declared_time.throttled + of.raised_time.throttled;
  }
  Section section{"Namespaces", ""};
  section.rows.push_back({"NAMESPACE", "USE", "REQUESTS", "LIMITS", "THROTTLED POD-HOURS"});
  for (const auto& [name, sum] : sums) {
    section.rows.push_back({name.empty() ? "-" : name, cpuText(Millicores(std::llround(sum.use))),
                            cpuText(sum.request), cpuText(sum.limit), hoursText(sum.throttled)});
  }
  return section;
}

std::vector<Section> sectionsOf(const UsageReport& report) {
  return {requestsOf(report), throttlingOf(report), limitsOf(report), quotasOf(report),
          namespacesOf(report)};
}

std::string headline(const UsageReport& report) {
  std::size_t pods = 0;
  std::map<std::pair<std::string, std::string>, std::size_t> workloads;
  for (const ContainerReport& of : report.containers) {
    std::size_t& most = workloads[{of.name_space, of.workload}];
    most = std::max(most, of.pods);
  }
  for (const auto& [name, count] : workloads) pods += count;
  return fmt::format("{} on {}, for {} until {}", countText(pods, "managed pod"),
                     countText(report.nodes.size(), "node"), ageText(report.to - report.from),
                     formatRfc3339(report.to));
}

void writeTime(JsonWriter& json, std::string_view key, const ThrottledTime& time) {
  json.key(key).beginObject();
  json.key("podSeconds").value(time.seconds);
  json.key("throttledPodSeconds").value(time.throttled);
  json.endObject();
}

}  // namespace

void UseHistogram::add(Millicores use, double seconds) {
  const double amount = std::max(1.0, static_cast<double>(use.count()));
  const auto step = static_cast<std::size_t>(std::ceil(std::log(amount) / std::log(kStep) - 1e-9));
  seconds_[std::min(step, kSteps - 1)] += static_cast<float>(seconds);
  total_ += seconds;
}

Millicores UseHistogram::percentile(double share) const {
  double below = 0;
  for (std::size_t i = 0; i < kSteps; ++i) {
    below += static_cast<double>(seconds_[i]);
    if (total_ > 0 && below >= share * total_ - 1e-6 * total_) {
      return Millicores(std::llround(std::pow(kStep, static_cast<double>(i))));
    }
  }
  return Millicores(0);
}

Millicores ContainerReport::requestChange() const {
  if (!recommended) return Millicores(0);
  const Millicores each = *recommended - request.value_or(Millicores(0));
  return Millicores(each.count() * static_cast<std::int64_t>(pods));
}

void ReportBuilder::add(const NodeRecord& state) {
  const auto [last, first] = last_.try_emplace(state.node, state.time);
  if (!first && state.time <= last->second) return;
  const double gap = std::chrono::duration<double>(state.time - last->second).count();
  last->second = state.time;
  if (!from_ || state.time < *from_) from_ = state.time;
  to_ = std::max(to_, state.time);
  // The first state, and one after a gap, say nothing of the time before them.
  const double seconds = gap <= kLongestGap ? gap : 0;
  for (const PodRecord& pod : state.pods) {
    if (!pod.left_alone.empty()) continue;
    const auto named = workloads.find({pod.name_space, pod.pod});
    const std::string workload = named == workloads.end() ? workloadName(pod.pod) : named->second;
    for (const ContainerRecord& container : pod.containers) {
      Container& into = containers_[{pod.name_space, workload, container.name}];
      into.use.add(container.usage, seconds);
      into.use_seconds += static_cast<double>(container.usage.count()) * seconds;
      into.seconds += seconds;
      into.most = std::max(into.most, container.usage);
      const bool throttled = container.blocked >= kThrottled;
      const bool raised =
          container.limit && container.declared && *container.limit > *container.declared;
      ThrottledTime& time = raised ? into.raised_time : into.declared_time;
      time.seconds += seconds;
      if (throttled) time.throttled += seconds;
      if (throttled && container.desired && container.limit &&
          *container.desired > *container.limit) {
        into.avoidable += seconds;
      }
      into.pods[pod.pod] = {.request = container.request.value_or(Millicores(0)),
                            .declared = container.declared,
                            .limit = container.limit,
                            .desired = container.desired,
                            .asks = container.request.has_value()};
    }
  }
}

UsageReport ReportBuilder::report() const {
  UsageReport report{.from = from_.value_or(WallTime{}), .to = to_, .nodes = {}, .containers = {}};
  for (const auto& [node, last] : last_) report.nodes.push_back(node);
  for (const auto& [key, seen] : containers_) {
    ContainerReport of{
        .name_space = key[0],
        .workload = key[1],
        .container = key[2],
        .pods = seen.pods.size(),
        .p95 = seen.seconds > 0 ? std::min(seen.use.percentile(0.95), seen.most) : Millicores(0),
        .most = seen.most,
        .declared_time = seen.declared_time,
        .raised_time = seen.raised_time,
        .avoidable = seen.avoidable};
    if (seen.seconds > 0) of.mean = Millicores(std::llround(seen.use_seconds / seen.seconds));
    const auto larger = [](std::optional<Millicores>& into, std::optional<Millicores> value) {
      if (value && (!into || *value > *into)) into = value;
    };
    for (const auto& [name, pod] : seen.pods) {
      if (pod.asks) larger(of.request, pod.request);
      larger(of.declared, pod.declared);
      larger(of.limit, pod.limit);
      larger(of.desired, pod.desired);
    }
    if (of.request && seen.seconds >= kEnough) {
      const Millicores wanted = rounded(static_cast<double>(of.p95.count()) * kHeadroom);
      const std::int64_t change = std::abs((wanted - *of.request).count());
      if (change >= kLeastChange.count() &&
          static_cast<double>(change) >= kFar * static_cast<double>(of.request->count())) {
        of.recommended = wanted;
      }
    }
    report.containers.push_back(std::move(of));
  }
  return report;
}

std::string workloadName(std::string_view pod) {
  const auto end = [](std::string_view name) { return name.substr(name.rfind('-') + 1); };
  const auto without = [](std::string_view name) { return name.substr(0, name.rfind('-')); };
  if (pod.find('-') == pod.npos || pod.front() == '-') return std::string(pod);
  const std::string_view last = end(pod);
  const bool ordinal =
      !last.empty() && last.size() <= 4 && last.find_first_not_of("0123456789") == last.npos;
  if (ordinal) return std::string(without(pod));
  if (last.size() != 5 || !isRandom(last)) return std::string(pod);
  const std::string_view rest = without(pod);
  if (rest.find('-') == rest.npos) return std::string(rest);
  const std::string_view hash = end(rest);
  const bool hashed = hash.size() >= 6 && hash.size() <= 10 && isRandom(hash);
  return std::string(hashed ? without(rest) : rest);
}

std::string reportText(const UsageReport& report, bool colours) {
  std::string text = view::paint(headline(report), view::Colour::kBold, colours) + "\n";
  for (const std::string& note : report.notes) text += view::printable(note) + "\n";
  for (const Section& section : sectionsOf(report)) {
    text += "\n" + view::paint(section.title, view::Colour::kBold, colours) + "\n";
    if (!section.text.empty()) {
      for (const std::string& line : view::wrap(section.text, 100)) text += line + "\n";
    }
    if (section.rows.empty()) continue;
    std::vector<view::Table::Column> columns;
    for (std::size_t i = 0; i < section.rows[0].size(); ++i) {
      const std::string& title = section.rows[0][i];
      const bool words = title == "NAMESPACE" || title == "WORKLOAD" || title == "CONTAINER" ||
                         title == "QUOTA" || title == "RESOURCE" || title == "IS";
      columns.push_back({title, words ? view::Table::Align::kLeft : view::Table::Align::kRight});
    }
    view::Table table(std::move(columns));
    for (std::size_t i = 1; i < section.rows.size(); ++i) table.row(section.rows[i]);
    text += table.toString(colours);
  }
  return text;
}

std::string reportHtml(const UsageReport& report) {
  view::Page page("MBCAS report");
  page.paragraph(headline(report) + ".");
  for (const std::string& note : report.notes) page.paragraph(note);
  for (const Section& section : sectionsOf(report)) {
    page.heading(section.title);
    if (!section.text.empty()) page.paragraph(section.text);
    if (!section.rows.empty()) page.table(section.rows);
  }
  return page.toString();
}

std::string reportJson(const UsageReport& report) {
  std::string text;
  JsonWriter json(text);
  json.beginObject();
  json.key("from").value(formatRfc3339(report.from));
  json.key("to").value(formatRfc3339(report.to));
  json.key("nodes").beginArray();
  for (const std::string& node : report.nodes) json.value(node);
  json.endArray().key("containers").beginArray();
  for (const ContainerReport& of : report.containers) {
    json.beginObject();
    json.key("namespace").value(of.name_space);
    json.key("workload").value(of.workload);
    json.key("container").value(of.container);
    json.key("pods").value(of.pods);
    writeCpu(json, "meanUse", of.mean);
    writeCpu(json, "p95Use", of.p95);
    writeCpu(json, "mostUse", of.most);
    writeCpu(json, "request", of.request);
    writeCpu(json, "recommendedRequest", of.recommended);
    writeCpu(json, "declared", of.declared);
    writeCpu(json, "limit", of.limit);
    writeCpu(json, "desired", of.desired);
    writeTime(json, "withDeclaredLimit", of.declared_time);
    writeTime(json, "withHigherLimit", of.raised_time);
    json.key("avoidableThrottledPodSeconds").value(of.avoidable);
    json.endObject();
  }
  json.endArray().key("quotas").beginArray();
  for (const QuotaReport& quota : report.quotas) {
    json.beginObject();
    json.key("namespace").value(quota.name_space);
    json.key("quota").value(quota.quota);
    json.key("resource").value(quota.resource);
    writeCpu(json, "hard", quota.hard);
    writeCpu(json, "used", quota.used);
    json.endObject();
  }
  json.endArray().key("notes").beginArray();
  for (const std::string& note : report.notes) json.value(note);
  json.endArray().endObject();
  return text;
}

}  // namespace mbcas::cli
