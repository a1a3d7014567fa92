// Objects for the tests of policy, as the API would send them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "mbcas/kube/types.h"
#include "mbcas/policy/bounds.h"

namespace mbcas::policy {

template <class T>
std::shared_ptr<const T> object(const std::string& json) {
  Result<std::shared_ptr<const T>> decoded = kube::decodeObject<T>(json);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message()) << "\n" << json;
  return decoded ? *decoded : nullptr;
}

// One container of a pod: {"main", "100m", "500m"}.
struct C {
  std::string name = "main";
  std::string request = "100m";
  std::string limit = "500m";
  std::string memory_request = "64Mi";
  std::string memory_limit = "128Mi";
  std::string more{};  // further members of the container
};

struct P {
  std::vector<C> containers = {{}};
  std::string name = "web-1";
  std::string qos = "Burstable";
  std::string phase = "Running";
  std::string meta{};    // further members of metadata, each with a comma after it
  std::string spec{};    // likewise
  std::string status{};  // likewise
  bool ready = true;
  int generation = 1;

  static std::string list(const std::string& cpu, const std::string& memory) {
    std::string out;
    if (!cpu.empty()) out += fmt::format(R"("cpu":"{}")", cpu);
    if (!memory.empty()) out += (out.empty() ? "" : ",") + fmt::format(R"("memory":"{}")", memory);
    return "{" + out + "}";
  }
  std::string json() const {
    std::string containers_json;
    std::string statuses;
    for (const C& c : containers) {
      const std::string resources =
          fmt::format(R"({{"requests":{},"limits":{}}})", list(c.request, c.memory_request),
                      list(c.limit, c.memory_limit));
      if (!containers_json.empty()) containers_json += ",", statuses += ",";
      containers_json +=
          fmt::format(R"({{{}"name":"{}","resources":{}}})", c.more, c.name, resources);
      statuses += fmt::format(
          R"({{"name":"{}","resources":{},"state":{{"running":{{}}}},"restartCount":0}})", c.name,
          resources);
    }
    return fmt::format(
        R"({{"metadata":{{{}"name":"{}","namespace":"shop","uid":"u1","generation":{},
            "resourceVersion":"10"}},
            "spec":{{{}"nodeName":"n1","containers":[{}]}},
            "status":{{{}"phase":"{}","qosClass":"{}","observedGeneration":1,
            "conditions":[{{"type":"Ready","status":"{}"}}],"containerStatuses":[{}]}}}})",
        meta, name, generation, spec, containers_json, status, phase, qos, ready ? "True" : "False",
        statuses);
  }
  std::shared_ptr<const kube::Pod> make() const { return object<kube::Pod>(json()); }
};

inline std::shared_ptr<const kube::Node> aNode(const std::string& cpu = "4") {
  return object<kube::Node>(fmt::format(
      R"({{"metadata":{{"name":"n1"}},"status":{{"allocatable":{{"cpu":"{}"}},
         "conditions":[{{"type":"Ready","status":"True"}}]}}}})",
      cpu));
}

inline NamespaceObjects shop(const std::string& meta = "") {
  return {.name_space = object<kube::Namespace>(fmt::format(
              R"({{"metadata":{{{}"name":"shop"}},"status":{{"phase":"Active"}}}})", meta))};
}

}  // namespace mbcas::policy
