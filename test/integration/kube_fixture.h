// One control plane for all tests of a binary, an administrator's client, and a namespace per test.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "mbcas/base/clock.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/types.h"
#include "test/support/control_plane.h"

namespace mbcas::test {

inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::seconds patience = std::chrono::seconds(240)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

class KubeTest : public testing::Test {
 public:
  static ControlPlane::Options& planeOptions() {
    static ControlPlane::Options options;
    return options;
  }

 protected:
  static void SetUpTestSuite() {
    if (plane != nullptr) return;
    if (const auto reason = ControlPlane::skipReason()) {
      skip = *reason;
      return;
    }
    auto started = ControlPlane::start(planeOptions());
    ASSERT_TRUE(started) << started.error();
    plane = std::move(*started);
  }
  static void TearDownTestSuite() { plane.reset(); }

  void SetUp() override {
    if (!skip.empty()) GTEST_SKIP() << skip;
    const Result<kube::ClientConfig> loaded =
        kube::loadKubeconfig({.explicit_path = plane->kubeconfig()});
    ASSERT_TRUE(loaded) << loaded.error().message();
    config = *loaded;
    admin = std::make_unique<kube::Client>(loop, config, clock);
    ns = fmt::format("t{}", ++counter);
    const auto made = admin->create<kube::Namespace>(
        "",
        fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", ns));
    ASSERT_TRUE(made) << made.error().describe();
  }

  // "name": "cpu request/cpu limit", the container is called main.
  static std::string podBody(const std::string& name, const std::string& request = "100m",
                             const std::string& limit = "200m", const std::string& more_spec = "",
                             const std::string& more_meta = "") {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"{}}},"spec":{{{}"containers":[
           {{"name":"main","image":"x","resources":{{"requests":{{"cpu":"{}","memory":"64Mi"}},
           "limits":{{"cpu":"{}","memory":"64Mi"}}}}}}]}}}})",
        name, more_meta, more_spec, request, limit);
  }
  std::shared_ptr<const kube::Pod> createPod(const std::string& body) {
    auto pod = admin->create<kube::Pod>(ns, body);
    EXPECT_TRUE(pod) << (pod ? "" : pod.error().describe());
    return pod ? *pod : nullptr;
  }
  // The definition of a custom resource was just made. (`kubectl wait` fails on one that has no
  // conditions yet.)
  template <class T>
  void awaitServed() {
    EXPECT_TRUE(eventually([&] { return admin->template list<T>().has_value(); }));
  }
  static std::string configMapBody(const std::string& name, const std::string& value) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"v":"{}"}}}})",
        name, value);
  }
  // Does the work for every i below count, some at a time.
  static void each(int count, const std::function<void(int)>& work) {
    std::atomic<int> next = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = next++; i < count; i = next++) work(i);
      });
    }
  }
  int port() const { return std::stoi(plane->server().substr(plane->server().rfind(':') + 1)); }

  static inline std::unique_ptr<ControlPlane> plane;
  static inline std::string skip;
  static inline std::atomic<int> counter = 0;
  SystemClock clock;
  kube::HttpLoop loop;
  kube::ClientConfig config;
  std::unique_ptr<kube::Client> admin;
  std::string ns;
};

}  // namespace mbcas::test
