#include "mbcas/cli/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace mbcas::cli {

std::string cpuText(Millicores cpu) {
  return fmt::format("{}m", cpu.count());
}

std::string cpuText(const std::optional<Millicores>& cpu) {
  return cpu ? cpuText(*cpu) : "-";
}

std::string percentText(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}%", *share * 100) : "-";
}

std::string priceText(const std::optional<double>& price) {
  return price ? fmt::format("{:.3g}", *price) : "overloaded";
}

std::string_view name(kube::QosClass qos) {
  switch (qos) {
    case kube::QosClass::kBestEffort:
      return "BestEffort";
    case kube::QosClass::kBurstable:
      return "Burstable";
    case kube::QosClass::kGuaranteed:
      return "Guaranteed";
    case kube::QosClass::kUnset:
      break;
  }
  return "-";
}

std::optional<int> minorOf(std::string_view version) {
  if (!version.starts_with("v1.")) return std::nullopt;
  version.remove_prefix(3);
  int minor = 0;
  const auto parsed = std::from_chars(version.data(), version.data() + version.size(), minor);
  if (parsed.ec != std::errc()) return std::nullopt;
  return minor;
}

std::string ageText(Nanos age) {
  using std::chrono::floor, std::chrono::seconds;
  const std::int64_t s = std::max<std::int64_t>(0, floor<seconds>(age).count());
  const std::int64_t minutes = s / 60;
  const std::int64_t hours = minutes / 60;
  const std::int64_t days = hours / 24;
  const auto two = [](std::int64_t large, char unit, std::int64_t small, char small_unit) {
    return small == 0 ? fmt::format("{}{}", large, unit)
                      : fmt::format("{}{}{}{}", large, unit, small, small_unit);
  };
  if (s < 120) return fmt::format("{}s", s);
  if (minutes < 10) return two(minutes, 'm', s % 60, 's');
  if (hours < 3) return fmt::format("{}m", minutes);
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return fmt::format("{}h", hours);
  if (days < 8) return two(days, 'd', hours % 24, 'h');
  return fmt::format("{}d", days);
}

std::string countText(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

PodCpu podCpu(const kube::Pod& pod) {
  PodCpu sum;
  for (const kube::Container& container : pod.containers) {
    if (container.role == kube::ContainerRole::kInit) continue;
    const kube::ContainerStatus* const status = pod.status(container.name);
    const bool reported = status != nullptr && status->has_resources;
    const std::optional<Millicores> limit =
        reported && status->limits.cpu() ? status->limits.cpu() : container.limits.cpu();
    const std::optional<Millicores> request =
        reported && status->requests.cpu() ? status->requests.cpu() : container.requests.cpu();
    ++sum.containers;
    sum.request += request.value_or(Millicores(0));
    if (limit && limit->count() > 0) {
      sum.limit += *limit;
    } else {
      ++sum.without_limit;
    }
  }
  return sum;
}

std::string limitText(const PodCpu& cpu) {
  if (cpu.without_limit == cpu.containers) return "none";
  return cpuText(cpu.limit) + (cpu.without_limit > 0 ? "+" : "");
}

void writeCpu(JsonWriter& json, std::string_view key, const std::optional<Millicores>& cpu) {
  json.key(key);
  if (cpu) {
    json.value(cpu->count());
  } else {
    json.null();
  }
}

void writeNumber(JsonWriter& json, std::string_view key, const std::optional<double>& number) {
  json.key(key);
  if (number) {
    json.value(*number);
  } else {
    json.null();
  }
}

}  // namespace mbcas::cli
