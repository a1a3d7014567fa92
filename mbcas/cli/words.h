// Small pieces of text that several commands print alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/base/units.h"
#include "mbcas/kube/types.h"

namespace mbcas::cli {

std::string cpuText(Millicores cpu);                          // "750m"
std::string cpuText(const std::optional<Millicores>& cpu);    // nothing: "-"
std::string percentText(const std::optional<double>& share);  // 0.35: "35%"; nothing: "-"
std::string priceText(const std::optional<double>& price);    // nothing: "overloaded"
std::string_view name(kube::QosClass qos);                    // "Burstable"; unset: "-"
// 33 of "v1.33.2"; nothing if it is no such thing.
std::optional<int> minorOf(std::string_view version);

// As kubectl shows ages: "45s", "3m12s", "5h20m", "3d4h", "20d". Never negative.
std::string ageText(Nanos age);
// "3 nodes", "1 node"
std::string countText(std::size_t count, std::string_view one);

// CPU of a pod's containers, plain init containers apart. A limit or request is that in force where
// the kubelet reports it.
struct PodCpu {
  Millicores request;
  Millicores limit;  // of those that have one
  int containers = 0;
  int without_limit = 0;
};
PodCpu podCpu(const kube::Pod& pod);
// "500m"; "500m+": some containers have none; "none": no container has one.
std::string limitText(const PodCpu& cpu);

// key: millicores, or null.
void writeCpu(JsonWriter& json, std::string_view key, const std::optional<Millicores>& cpu);
void writeNumber(JsonWriter& json, std::string_view key, const std::optional<double>& number);

}  // namespace mbcas::cli
