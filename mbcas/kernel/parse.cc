#include "mbcas/kernel/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "mbcas/kernel/text.h"

namespace mbcas::kernel {

std::unexpected<Error> notUnderstood(std::string_view what, std::string_view line) {
  constexpr std::size_t kQuoted = 80;
  std::string quoted(line.substr(0, kQuoted));
  for (char& c : quoted) {
    if (c < ' ' || c > '~') c = '?';
  }
  return failure(fmt::format("{}: \"{}\"{}", what, quoted, line.size() > kQuoted ? " (cut)" : ""));
}

std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view head = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return head;
}

bool toNumber(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view onlyLine(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

namespace {

// A counter in `unit` nanoseconds; false if it does not fit 64 bits of nanoseconds.
bool toNanos(std::uint64_t number, std::uint64_t unit, Nanos& time) {
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / unit) {
    return false;
  }
  time = Nanos(static_cast<std::int64_t>(number * unit));
  return true;
}

constexpr std::uint64_t kNano = 1;
constexpr std::uint64_t kMicro = 1000;

Result<Nanos> parseTime(std::string_view text, std::uint64_t unit) {
  std::uint64_t number = 0;
  Nanos time{0};
  if (!toNumber(onlyLine(text), number) || !toNanos(number, unit, time)) {
    return notUnderstood("not a time", text);
  }
  return time;
}

}  // namespace

Result<CpuStat> parseCpuStat(std::string_view text) {
  CpuStat stat;
  Throttling throttling;
  bool periods = false;
  bool throttled_periods = false;
  bool time = false;
  while (!text.empty()) {
    const std::string_view line = cut(text, '\n');
    std::string_view value = line;
    const std::string_view key = cut(value, ' ');
    std::uint64_t number = 0;
    // Only the keys that are used here have to be valid.
    const auto read = [&] { return toNumber(value, number); };
    bool good = true;
    if (key == "usage_usec") {
      good = read() && toNanos(number, kMicro, stat.usage.emplace());
    } else if (key == "nr_periods") {
      periods = good = read();
      throttling.periods = number;
    } else if (key == "nr_throttled") {
      throttled_periods = good = read();
      throttling.throttled_periods = number;
    } else if (key == "throttled_time") {
      time = good = read() && toNanos(number, kNano, throttling.time);
    } else if (key == "throttled_usec") {
      time = good = read() && toNanos(number, kMicro, throttling.time);
    }
    if (!good) return notUnderstood("cpu.stat", line);
  }
  if (periods && throttled_periods && time) stat.throttling = throttling;
  if (!stat.usage && !stat.throttling) return failure("cpu.stat: neither usage nor throttling");
  return stat;
}

Result<Nanos> parseCpuStatLocal(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = cut(text, '\n');
    std::string_view value = line;
    const std::string_view key = cut(value, ' ');
    if (key != "throttled_time" && key != "throttled_usec") continue;
    std::uint64_t number = 0;
    Nanos time{0};
    if (!toNumber(value, number) ||
        !toNanos(number, key == "throttled_time" ? kNano : kMicro, time)) {
      return notUnderstood("cpu.stat.local", line);
    }
    return time;
  }
  return failure("cpu.stat.local: no throttled time");
}

Result<CpuLimit> parseCpuMax(std::string_view text) {
  std::string_view period_text = onlyLine(text);
  const std::string_view quota_text = cut(period_text, ' ');
  CpuLimit limit;
  std::uint64_t period = 0;
  std::uint64_t quota = 0;
  if (!toNumber(period_text, period) || period == 0 || !toNanos(period, kMicro, limit.period)) {
    return notUnderstood("cpu.max", text);
  }
  if (quota_text == "max") return limit;
  if (!toNumber(quota_text, quota) || !toNanos(quota, kMicro, limit.quota.emplace())) {
    return notUnderstood("cpu.max", text);
  }
  return limit;
}

Result<std::optional<Nanos>> parseCfsQuota(std::string_view text) {
  if (onlyLine(text) == "-1") return std::nullopt;
  return parseTime(text, kMicro);
}

Result<Nanos> parseMicros(std::string_view text) {
  return parseTime(text, kMicro);
}
Result<Nanos> parseNanos(std::string_view text) {
  return parseTime(text, kNano);
}

Result<std::uint64_t> parseCount(std::string_view text) {
  std::uint64_t number = 0;
  if (!toNumber(onlyLine(text), number)) return notUnderstood("not a count", text);
  return number;
}

std::uint64_t kernelWeight(std::uint64_t cpu_weight) {
  constexpr std::uint64_t kLeast = 1, kDefault = 100, kMost = 10'000;
  return (std::clamp(cpu_weight, kLeast, kMost) * kDefaultWeight + kDefault / 2) / kDefault;
}

Result<MachineTime> parseProcStat(std::string_view text) {
  const std::string_view line = cut(text, '\n');
  std::string_view fields = line;
  if (cut(fields, ' ') != "cpu") return notUnderstood("not /proc/stat", line);
  // user nice system idle iowait irq softirq steal; guest times after them are in user and nice.
  constexpr std::size_t kFields = 8;
  MachineTime time;
  std::uint64_t* const counters[kFields] = {&time.tasks,      &time.tasks, &time.tasks,
                                            &time.idle,       &time.idle,  &time.interrupts,
                                            &time.interrupts, &time.steal};
  for (std::size_t i = 0; i < kFields && !fields.empty();) {
    const std::string_view field = cut(fields, ' ');
    if (field.empty()) continue;  // two blanks follow "cpu"
    std::uint64_t ticks = 0;
    if (!toNumber(field, ticks)) return notUnderstood("not a count of ticks", line);
    *counters[i++] += ticks;
  }
  while (text.starts_with("cpu")) {  // a line for each CPU that is online
    cut(text, '\n');
    ++time.cpus;
  }
  return time;
}

Result<Pressure> parsePressure(std::string_view text) {
  Pressure pressure;
  bool some = false;
  while (!text.empty()) {
    const std::string_view line = cut(text, '\n');
    std::string_view fields = line;
    const std::string_view kind = cut(fields, ' ');
    if (kind != "some" && kind != "full") continue;
    const std::size_t total = fields.find("total=");
    std::uint64_t number = 0;
    Nanos time{0};
    if (total == std::string_view::npos || !toNumber(fields.substr(total + 6), number) ||
        !toNanos(number, kMicro, time)) {
      return notUnderstood("pressure", line);
    }
    if (kind == "some") {
      pressure.some = time;
      some = true;
    } else {
      pressure.full = time;
    }
  }
  if (!some) return failure("pressure: no \"some\" line");
  return pressure;
}

}  // namespace mbcas::kernel
