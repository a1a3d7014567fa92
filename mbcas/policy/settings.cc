#include "mbcas/policy/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "mbcas/base/quantity.h"

namespace mbcas::policy {
namespace {

constexpr std::array<std::pair<Mode, std::string_view>, 4> kModes{{{Mode::kOff, "off"},
                                                                   {Mode::kRecommend, "recommend"},
                                                                   {Mode::kRaiseOnly, "raise-only"},
                                                                   {Mode::kFull, "full"}}};
constexpr std::array<std::pair<Fairness, std::string_view>, 3> kFairness{
    {{Fairness::kOff, "off"},
     {Fairness::kNamespace, "namespace"},
     {Fairness::kWorkload, "workload"}}};

template <class Names, class Value>
std::string_view nameIn(const Names& names, Value value) {
  for (const auto& [known, text] : names) {
    if (known == value) return text;
  }
  return "unknown";
}

template <class Value, std::size_t N>
Result<Value> parseIn(const std::array<std::pair<Value, std::string_view>, N>& names,
                      std::string_view text) {
  std::vector<std::string_view> choices;
  for (const auto& [value, known] : names) {
    if (known == text) return value;
    choices.push_back(known);
  }
  return failure(fmt::format("\"{}\" is none of {}", text.substr(0, 40), fmt::join(choices, ", ")));
}

Result<double> parseNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) {
    return failure(fmt::format("not a number: \"{}\"", text.substr(0, 40)));
  }
  return number;
}

Result<bool> parseBool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return failure(fmt::format("neither true nor false: \"{}\"", text.substr(0, 40)));
}

std::vector<std::string> parseNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

// Stores the parsed value, or returns the error.
template <class Value, class Target>
Result<void> store(Result<Value> parsed, Target& target) {
  if (!parsed) return failure(std::move(parsed).error());
  target = *std::move(parsed);
  return {};
}

Result<void> storeWithin(Result<double> parsed, double least, double most, double& target) {
  if (!parsed) return failure(std::move(parsed).error());
  const double number = *parsed;
  if (!(number >= least && number <= most)) {
    return failure(fmt::format("{} is not between {} and {}", number, least, most));
  }
  target = number;
  return {};
}

struct Field {
  std::string_view key;
  Result<void> (*set)(Settings&, std::string_view);
  std::string (*get)(const Settings&);
};

template <auto Member>
constexpr Field durationField(std::string_view key) {
  return {key,
          [](Settings& s, std::string_view text) { return store(parseDuration(text), Member(s)); },
          [](const Settings& s) { return formatDuration(Member(const_cast<Settings&>(s))); }};
}
template <auto Member>
constexpr Field numberField(std::string_view key) {
  return {key,
          [](Settings& s, std::string_view text) { return store(parseNumber(text), Member(s)); },
          [](const Settings& s) { return fmt::format("{}", Member(const_cast<Settings&>(s))); }};
}

// The profile comes first: it decides what the others default to.
const std::array kFields{
    Field{"profile",
          [](Settings& s, std::string_view text) -> Result<void> {
            const Result<void> stored = store(control::parseProfile(text), s.profile);
            if (!stored) return stored;
            s.law = control::settingsOf(s.profile);
            if (s.profile == control::Profile::kClassic) s.estimator = "classic";
            return {};
          },
          [](const Settings& s) { return std::string(control::name(s.profile)); }},
    Field{"paused",
          [](Settings& s, std::string_view text) { return store(parseBool(text), s.paused); },
          [](const Settings& s) { return std::string(s.paused ? "true" : "false"); }},
    Field{"mode", [](Settings& s, std::string_view text) { return store(parseMode(text), s.mode); },
          [](const Settings& s) { return std::string(name(s.mode)); }},
    Field{"fairness",
          [](Settings& s, std::string_view text) {
            return store(parseIn(kFairness, text), s.fairness);
          },
          [](const Settings& s) { return std::string(name(s.fairness)); }},
    Field{"bid-rule",
          [](Settings& s, std::string_view text) {
            return store(control::parseBidRule(text), s.law.bid_rule);
          },
          [](const Settings& s) { return std::string(control::name(s.law.bid_rule)); }},
    Field{"reclaim",
          [](Settings& s, std::string_view text) {
            return store(control::parseReclaim(text), s.law.reclaim);
          },
          [](const Settings& s) { return std::string(control::name(s.law.reclaim)); }},
    Field{"strict-capacity",
          [](Settings& s, std::string_view text) {
            return store(parseBool(text), s.law.strict_capacity);
          },
          [](const Settings& s) { return std::string(s.law.strict_capacity ? "true" : "false"); }},
    durationField<[](Settings& s) -> Nanos& { return s.law.guards.cooldown; }>("cooldown"),
    numberField<[](Settings& s) -> double& { return s.law.guards.max_step; }>("max-step"),
    numberField<[](Settings& s) -> double& { return s.law.guards.raise_max_step; }>(
        "raise-max-step"),
    durationField<[](Settings& s) -> Nanos& { return s.silence; }>("silence"),
    durationField<[](Settings& s) -> Nanos& { return s.law.write_interval; }>("write-interval"),
    numberField<[](Settings& s) -> double& { return s.law.hysteresis; }>("hysteresis"),
    numberField<[](Settings& s) -> double& { return s.law.insurance; }>("insurance"),
    numberField<[](Settings& s) -> double& { return s.law.reserve; }>("reserve"),
    Field{"min-cpu",
          [](Settings& s, std::string_view text) -> Result<void> {
            const Result<Quantity> quantity = Quantity::parse(text);
            if (!quantity) return failure(quantity.error());
            s.law.min_cpu = quantity->millicores();
            return {};
          },
          [](const Settings& s) { return fmt::format("{}m", s.law.min_cpu.count()); }},
    Field{
        "exclude-namespaces",
        [](Settings& s, std::string_view text) -> Result<void> {
          s.excluded_namespaces = parseNames(text);
          return {};
        },
        [](const Settings& s) { return fmt::format("{}", fmt::join(s.excluded_namespaces, ",")); }},
    durationField<[](Settings& s) -> Nanos& { return s.sample_interval; }>("sample-interval"),
    Field{"warmup",
          [](Settings& s, std::string_view text) -> Result<void> {
            double samples = 0;
            const Result<void> stored = storeWithin(parseNumber(text), 0, 3600, samples);
            if (!stored) return stored;
            s.warmup = static_cast<int>(samples);
            return {};
          },
          [](const Settings& s) { return std::to_string(s.warmup); }},
    durationField<[](Settings& s) -> Nanos& { return s.burst_hold; }>("burst-hold"),
    Field{"estimator",
          [](Settings& s, std::string_view text) -> Result<void> {
            if (text != "responsive" && text != "classic") {
              return failure(fmt::format("\"{}\" is none of responsive, classic", text));
            }
            s.estimator = text;
            return {};
          },
          [](const Settings& s) { return s.estimator; }},
    Field{"ema-up",
          [](Settings& s, std::string_view text) {
            return storeWithin(parseNumber(text), 0, 1, s.ema_up);
          },
          [](const Settings& s) { return fmt::format("{}", s.ema_up); }},
    Field{"ema-down",
          [](Settings& s, std::string_view text) {
            return storeWithin(parseNumber(text), 0, 1, s.ema_down);
          },
          [](const Settings& s) { return fmt::format("{}", s.ema_down); }},
    Field{"throttle-threshold",
          [](Settings& s, std::string_view text) {
            return storeWithin(parseNumber(text), 0, 1, s.throttle_threshold);
          },
          [](const Settings& s) { return fmt::format("{}", s.throttle_threshold); }},
};

}  // namespace

std::string_view name(Mode mode) {
  return nameIn(kModes, mode);
}
std::string_view name(Fairness fairness) {
  return nameIn(kFairness, fairness);
}
Result<Mode> parseMode(std::string_view text) {
  return parseIn(kModes, text);
}

Result<Nanos> parseDuration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Nanos>, 4> kUnits{
      {{"ms", std::chrono::milliseconds(1)},  // before "m"
       {"h", std::chrono::hours(1)},
       {"m", std::chrono::minutes(1)},
       {"s", std::chrono::seconds(1)}}};
  constexpr auto kMost = static_cast<double>(Nanos(std::chrono::hours(24)).count());
  const auto wrong = [&] {
    return failure(
        fmt::format("not a duration of at most a day, as 1m30s: \"{}\"", text.substr(0, 40)));
  };
  if (text == "0") return Nanos(0);
  if (text.empty()) return wrong();
  double total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    if (rest[0] < '0' || rest[0] > '9') return wrong();
    double number = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc{}) return wrong();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    bool known = false;
    for (const auto& [unit, length] : kUnits) {
      if (!rest.starts_with(unit)) continue;
      rest.remove_prefix(unit.size());
      total += number * static_cast<double>(length.count());
      known = true;
      break;
    }
    if (!known || !(total <= kMost)) return wrong();
  }
  return Nanos(std::llround(total));
}

std::string formatDuration(Nanos duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

Result<ParsedSettings> parseSettings(const SettingsData& data) {
  ParsedSettings parsed;
  for (const Field& field : kFields) {
    const auto found = data.find(field.key);
    if (found == data.end()) continue;
    Result<void> set = field.set(parsed.settings, found->second);
    if (!set) return failure(std::move(set).error().within(field.key));
  }
  const Settings& settings = parsed.settings;
  Result<void> valid = control::validate(settings.law);
  if (!valid) return failure(std::move(valid).error());
  if (settings.silence < std::chrono::seconds(20)) {
    return failure(
        "silence: agents renew their Leases every 10s; with less than 20s, healthy agents would "
        "count as silent");
  }
  if (settings.sample_interval < std::chrono::milliseconds(100)) {
    return failure("sample-interval: less than 100ms");
  }
  for (const auto& [key, value] : data) {
    bool known = false;
    for (const Field& field : kFields) known = known || field.key == key;
    if (!known) parsed.unknown.push_back(key);
  }
  return parsed;
}

SettingsData settingsData(const Settings& settings) {
  SettingsData data;
  for (const Field& field : kFields) data.emplace(field.key, field.get(settings));
  return data;
}

}  // namespace mbcas::policy
