// What `mbcas run FILE` reads: the cgroups of this host to manage, and how.
//
//   settings:                # all optional, named as the flags
//     profile: responsive
//     reserve: 0.10
//   pods:
//     - name: web
//       cgroup: /system.slice/nginx.service     # or a pattern: /system.slice/docker-*.scope
//       request: 200m        # guaranteed, and its weight; default 100m
//       limit: 500m          # declared; default: the limit in force. A cgroup with neither is
//                            # left alone
//       min: 100m            # never below, never above
//       max: 2
//       priority: 1000
//     - name: batch
//       command: [./crunch, --all]              # started by mbcas in a cgroup of its own
//       limit: 1
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/base/units.h"

namespace mbcas::host {

struct PodConfig {
  std::string name;
  std::string cgroup;                // path or pattern; empty: made for the command
  std::vector<std::string> command;  // empty: the cgroup exists already
  Millicores request{100};
  std::optional<Millicores> limit;
  std::optional<Millicores> min;
  std::optional<Millicores> max;
  int priority = 0;

  friend bool operator==(const PodConfig&, const PodConfig&) = default;
};

struct HostConfig {
  std::vector<PodConfig> pods;
  std::map<std::string, std::string> settings;  // as text; control::Settings understands them

  friend bool operator==(const HostConfig&, const HostConfig&) = default;
};

// The error names the line and the field: "line 4: pods[0].limit: ...".
Result<HostConfig> parseConfig(std::string_view yaml);

}  // namespace mbcas::host
