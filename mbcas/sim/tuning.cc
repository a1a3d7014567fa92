#include "mbcas/sim/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace mbcas::sim {
namespace {

struct Setting {
  std::string_view name;
  double (*get)(const Tuning&);
  void (*set)(Tuning&, double);
  std::vector<double> tried{};  // by a sweep
  bool of_classic = false;      // which alone has it
  bool is_time = false;         // in seconds
};

double secondsOf(Nanos time) {
  return std::chrono::duration<double>(time).count();
}
Nanos timeOf(double seconds) {
  return Nanos(std::llround(seconds * 1e9));
}

template <auto member>
Setting number(std::string_view name, std::vector<double> tried) {
  return {name, [](const Tuning& t) { return member(const_cast<Tuning&>(t)); },
          [](Tuning& t, double value) { member(t) = value; }, std::move(tried)};
}
template <auto member>
Setting time(std::string_view name, std::vector<double> tried) {
  return {name,
          [](const Tuning& t) { return secondsOf(member(const_cast<Tuning&>(t))); },
          [](Tuning& t, double value) { member(t) = timeOf(value); },
          std::move(tried),
          false,
          true};
}

Setting ofClassic(Setting setting) {
  setting.of_classic = true;
  return setting;
}

const std::vector<Setting>& settings() {
  using T = Tuning;
  static const std::vector<Setting> kSettings = {
      number<[](T& t) -> double& { return t.law.headroom; }>("headroom", {1.1, 1.15, 1.5, 2}),
      number<[](T& t) -> double& { return t.law.hysteresis; }>("hysteresis",
                                                               {0.02, 0.05, 0.15, 0.25}),
      time<[](T& t) -> Nanos& { return t.estimator.window; }>("window", {10, 20, 45, 60}),
      time<[](T& t) -> Nanos& { return t.estimator.mean; }>("mean", {2, 10, 20}),
      time<[](T& t) -> Nanos& { return t.estimator.burst_hold; }>("burst-hold",
                                                                  {60, 120, 600, 1200}),
      time<[](T& t) -> Nanos& { return t.law.lower_lasts; }>("lower-lasts", {5, 30, 60, 120}),
      time<[](T& t) -> Nanos& { return t.law.regret; }>("regret", {0, 120, 1800}),
      time<[](T& t) -> Nanos& { return t.law.write_interval; }>("write-interval", {1, 5, 30, 60}),
      time<[](T& t) -> Nanos& { return t.law.guards.cooldown; }>("cooldown", {5, 15, 60, 120}),
      number<[](T& t) -> double& { return t.law.guards.max_step; }>("max-step", {1.2, 2, 4}),
      time<[](T& t) -> Nanos& { return t.law.guards.market_interval; }>("market-interval",
                                                                        {5, 30, 60}),
      number<[](T& t) -> double& { return t.law.scarce_from; }>("scarce-from", {0.88, 1}),
      number<[](T& t) -> double& { return t.law.scarce_until; }>("scarce-until", {0.7, 0.8, 0.93}),
      number<[](T& t) -> double& { return t.law.insurance; }>("insurance", {1, 1.5, 3, 4}),
      number<[](T& t) -> double& { return t.law.reserve; }>("reserve", {0.02, 0.05, 0.2}),
      ofClassic(number<[](T& t) -> double& { return t.estimator.ema_up; }>(
          "ema-up", {0.1, 0.2, 0.5, 0.8, 1})),
      ofClassic(number<[](T& t) -> double& { return t.estimator.ema_down; }>(
          "ema-down", {0.02, 0.05, 0.2, 0.3, 1})),
      ofClassic(number<[](T& t) -> double& { return t.estimator.throttle_threshold; }>(
          "throttle-threshold", {0.02, 0.05, 0.2, 0.5, 1})),
  };
  return kSettings;
}

constexpr std::string_view kReclaim = "reclaim";

Result<void> validate(const Tuning& tuning) {
  if (Result<void> good = control::validate(tuning.law); !good) return good;
  const demand::Settings& estimator = tuning.estimator;
  constexpr Nanos kMost = std::chrono::seconds(60);  // what a window holds, at a sample a second
  if (estimator.window < std::chrono::seconds(5) || estimator.window > kMost) {
    return failure("window: must be 5 to 60 seconds");
  }
  if (estimator.mean < std::chrono::seconds(1) || estimator.mean > estimator.window) {
    return failure("mean: must be 1 second at least, and within the window");
  }
  for (const double share : {estimator.ema_up, estimator.ema_down, estimator.throttle_threshold}) {
    if (!(share > 0 && share <= 1)) {
      return failure("ema-up, ema-down, throttle-threshold: must be above 0, and 1 at most");
    }
  }
  return {};
}

}  // namespace

Tuning tuningOf(control::Profile profile) {
  Tuning tuning{.law = control::settingsOf(profile)};
  if (profile == control::Profile::kClassic) tuning.estimator.kind = demand::Kind::kClassic;
  return tuning;
}

std::span<const std::string_view> tuningNames() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Setting& setting : settings()) names.push_back(setting.name);
    names.push_back(kReclaim);
    return names;
  }();
  return kNames;
}

bool isTime(std::string_view setting) {
  return std::ranges::any_of(
      settings(), [&](const Setting& each) { return each.name == setting && each.is_time; });
}

Result<void> tune(Tuning& tuning, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  Tuning tuned = tuning;
  bool known = false;
  if (name == kReclaim) {
    const Result<control::Reclaim> reclaim = control::parseReclaim(value);
    if (!reclaim) return failure(reclaim.error().message());
    tuned.law.reclaim = *reclaim;
    known = true;
  }
  for (const Setting& setting : settings()) {
    if (setting.name != name) continue;
    if (setting.of_classic && tuning.estimator.kind != demand::Kind::kClassic) {
      return failure(fmt::format("{}: only the profile classic has it", name));
    }
    double parsed = 0;
    const char* const begin = value.data();
    const char* const end = begin + value.size();
    const auto [rest, error] = std::from_chars(begin, end, parsed);
    if (error != std::errc() || rest != end || !(parsed >= 0 && parsed <= 1e6)) {
      return failure(
          fmt::format("{}: \"{}\" is not a number from 0 on", name, value.substr(0, 40)));
    }
    setting.set(tuned, parsed);
    known = true;
  }
  if (!known) {
    return failure(fmt::format("no setting \"{}\"; there are {}", name.substr(0, 40),
                               fmt::join(tuningNames(), ", ")));
  }
  if (Result<void> good = validate(tuned); !good) return good;
  tuning = tuned;
  return {};
}

std::vector<Candidate> sweepCandidates(control::Profile profile) {
  const bool classic = profile == control::Profile::kClassic;
  std::vector<Candidate> candidates = {{.tuning = tuningOf(profile)}};
  const auto add = [&](std::string_view name, const std::string& value) {
    Candidate candidate{std::string(name), value, tuningOf(profile)};
    if (tune(candidate.tuning, fmt::format("{}={}", name, value))) {
      candidates.push_back(std::move(candidate));
    }
  };
  for (const Setting& setting : settings()) {
    if (setting.of_classic != classic) continue;
    for (const double value : setting.tried) add(setting.name, fmt::format("{:g}", value));
  }
  if (classic) return candidates;
  for (const char* reclaim : {"always", "never"}) add(kReclaim, reclaim);
  return candidates;
}

}  // namespace mbcas::sim
