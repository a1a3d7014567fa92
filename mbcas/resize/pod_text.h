// Pods for the tests of this folder, made from JSON as the API server would send it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "mbcas/kube/types.h"

namespace mbcas::resize {

struct PodText {
  std::string main;    // members of the container "main"
  std::string more{};  // further containers, each after a comma
  std::string init{};  // init containers
  std::string meta{};  // further members, each before a comma
  std::string spec{};
  std::string status{};  // members
  int generation = 1;
  std::string version = "100";
  std::string uid = "u1";
};

inline std::string resources(const std::string& request, const std::string& limit) {
  return fmt::format(R"("resources":{{"requests":{{"cpu":"{}","memory":"1Gi"}},)"
                     R"("limits":{{"cpu":"{}","memory":"1Gi"}}}})",
                     request, limit);
}

inline std::shared_ptr<const kube::Pod> podText(const PodText& text) {
  const auto pod = kube::decodeObject<kube::Pod>(fmt::format(
      R"({{"metadata":{{{}"name":"p","namespace":"n","uid":"{}","generation":{},"resourceVersion":"{}"}},
      "spec":{{{}"nodeName":"node","initContainers":[{}],"containers":[{{"name":"main",{}}}{}]}},
      "status":{{{}}}}})",
      text.meta, text.uid, text.generation, text.version, text.spec, text.init, text.main,
      text.more, text.status));
  if (!pod) {
    ADD_FAILURE() << pod.error().message();
    return nullptr;
  }
  return *pod;
}

}  // namespace mbcas::resize
