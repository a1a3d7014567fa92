#include "mbcas/agent/sight.h"

#include <fmt/format.h>

#include <algorithm>

namespace mbcas::agent {
namespace {

constexpr std::string_view kFine = "ok";

std::int64_t seconds(Nanos time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

std::string because(const std::string& error) {
  return error.empty() ? "" : fmt::format(" ({})", error);
}

// A probe's answer is one line.
std::string oneLine(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

Sight lookAtWatch(const WatchEvidence& watch, const Evidence& evidence, const SightBounds& bounds,
                  MonotonicTime now) {
  // What could not be heard while the server did not answer does not count.
  const MonotonicTime since = std::max(watch.heard.value_or(evidence.started),
                                       evidence.answering.value_or(evidence.started));
  if (!evidence.answering || now - since <= bounds.watches) {
    if (watch.heard) return {.state = Sight::State::kSeeing};
    return {.what = fmt::format("the watch of {} has not listed anything yet{}", watch.kind,
                                because(watch.error))};
  }
  return {.state = Sight::State::kBlind,
          .what = fmt::format(
              "the watch of {} has brought nothing for {} s although the API server answers{}",
              watch.kind, seconds(now - since), because(watch.error)),
          .remedy =
              "Check the agent's permissions (kubectl apply -f config/agent/rbac.yaml) and "
              "what lies between the agent and the API server"};
}

Sight lookAtCgroups(const Evidence& evidence, const SightBounds& bounds, MonotonicTime now) {
  const CgroupEvidence& cgroups = evidence.cgroups;
  const Nanos age = now - cgroups.read.value_or(evidence.started);
  if (age <= bounds.cgroups) {
    if (cgroups.read) return {.state = Sight::State::kSeeing};
    return {.what = "no cgroup has been read yet" + because(cgroups.error)};
  }
  Sight blind{.state = Sight::State::kBlind,
              .remedy =
                  "Check that the node's cgroup tree is mounted where --cgroup-root says; "
                  "mbcas inspect cgroups shows what can be found there"};
  if (cgroups.managed == 0) {
    blind.what = fmt::format("the root of the cgroup tree cannot be read for {} s{}", seconds(age),
                             because(cgroups.error));
  } else {
    blind.what = fmt::format("none of the cgroups of {} managed pods can be read for {} s{}",
                             cgroups.managed, seconds(age), because(cgroups.error));
  }
  return blind;
}

}  // namespace

Sight look(const Evidence& evidence, const SightBounds& bounds, MonotonicTime now) {
  std::vector<Sight> parts;
  parts.reserve(evidence.watches.size() + 1);
  parts.push_back(lookAtCgroups(evidence, bounds, now));
  for (const WatchEvidence& watch : evidence.watches) {
    parts.push_back(lookAtWatch(watch, evidence, bounds, now));
  }
  // What is blind comes before what merely starts.
  for (const auto state : {Sight::State::kBlind, Sight::State::kStarting}) {
    const auto found = std::ranges::find(parts, state, &Sight::state);
    if (found != parts.end()) return *std::move(found);
  }
  return {.state = Sight::State::kSeeing};
}

std::string probeAnswer(const Health& health) {
  std::string live(kFine);
  if (health.http_loop_silent > kHttpLoopBound) {
    live = fmt::format("the HTTP loop has hung for {} s", seconds(health.http_loop_silent));
  }
  std::string ready(kFine);
  if (health.sight.state == Sight::State::kBlind) {
    ready = "blind: " + health.sight.what;
  } else if (!health.sight.seeing()) {
    ready = "starting: " + health.sight.what;
  } else if (!health.refused.empty()) {
    ready = "silent: the API server refuses the Lease: " + health.refused;
  }
  return fmt::format("live: {}\nready: {}\n", live, oneLine(std::move(ready)));
}

Result<void> readProbe(std::string_view answer, std::string_view probe) {
  const std::string key = fmt::format("{}: ", probe);
  while (!answer.empty()) {
    const std::string_view line = answer.substr(0, answer.find('\n'));
    answer.remove_prefix(std::min(answer.size(), line.size() + 1));
    if (!line.starts_with(key)) continue;
    const std::string_view value = line.substr(key.size());
    if (value == kFine) return {};
    return failure(std::string(value));
  }
  return failure(fmt::format("the agent reports nothing about \"{}\"", probe));
}

}  // namespace mbcas::agent
