// The controller of README.md against an API server of the test's own, which keeps ConfigMaps.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mbcas/kube/example/stamper.h"
#include "mbcas/kube/types.h"

namespace mbcas::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The ConfigMaps of the namespace "ns", over HTTP: lists, watches and applied annotations.
class FakeApi {
 public:
  FakeApi() {
    server_.Get("/api/v1/configmaps", [this](const auto& request, auto& response) {
      EXPECT_EQ(request.get_param_value("labelSelector"), "stamp");
      if (request.has_param("sendInitialEvents")) {
        response.status = 422;  // this server does not stream lists
      } else if (request.has_param("watch")) {
        watch(std::stoul(request.get_param_value("resourceVersion")), response);
      } else {
        list(response);
      }
    });
    server_.Patch("/api/v1/namespaces/ns/configmaps/(.*)",
                  [this](const auto& request, auto& response) { apply(request, response); });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakeApi() {
    ending_ = true;
    server_.stop();
    thread_.join();
  }
  FakeApi(const FakeApi&) = delete;
  FakeApi& operator=(const FakeApi&) = delete;

  std::string address() const { return fmt::format("http://127.0.0.1:{}", port_); }

  void put(const std::string& name, int keys) {
    const std::scoped_lock lock(mutex_);
    maps_[name].keys = keys;
    changed(name);
  }
  // The annotation of the ConfigMap; empty if it has none yet.
  std::string stamp(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    return maps_.at(name).stamp;
  }
  std::size_t applied() const {
    const std::scoped_lock lock(mutex_);
    return applied_;
  }

 private:
  struct Map {
    int keys = 0;
    std::string stamp{};
    std::size_t version = 0;
  };

  void changed(const std::string& name) {
    events_.push_back(name);
    maps_[name].version = events_.size();
  }
  std::string json(const std::string& name) const {
    const Map& map = maps_.at(name);
    std::string data;
    for (int i = 0; i < map.keys; ++i) data += fmt::format(R"({}"k{}":"v")", i == 0 ? "" : ",", i);
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"u-{0}","resourceVersion":"{1}",)"
        R"("annotations":{{{2}}}}},"data":{{{3}}}}})",
        name, map.version,
        map.stamp.empty() ? "" : fmt::format(R"("example.com/keys":"{}")", map.stamp), data);
  }
  void list(httplib::Response& response) const {
    const std::scoped_lock lock(mutex_);
    std::string items;
    for (const auto& [name, map] : maps_) items += (items.empty() ? "" : ",") + json(name);
    response.set_content(fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"items":[{}]}})",
                                     events_.size(), items),
                         "application/json");
  }
  // Sends every event after `from`, and then those that come.
  void watch(std::size_t from, httplib::Response& response) const {
    response.set_chunked_content_provider(
        "application/json", [this, from](std::size_t, httplib::DataSink& sink) mutable {
          std::string lines;
          {
            const std::scoped_lock lock(mutex_);
            for (; from < events_.size(); ++from) {
              lines +=
                  fmt::format(R"({{"type":"MODIFIED","object":{}}})", json(events_[from])) + "\n";
            }
          }
          if (!lines.empty()) return sink.write(lines.data(), lines.size()) && !ending_;
          std::this_thread::sleep_for(milliseconds(2));
          return !ending_;
        });
  }
  void apply(const httplib::Request& request, httplib::Response& response) {
    const std::string name = request.matches[1];
    EXPECT_EQ(request.get_param_value("fieldManager"), "stamper");
    const auto wanted = decodeObject<ConfigMap>(request.body);
    ASSERT_TRUE(wanted);
    EXPECT_EQ((*wanted)->meta.uid, "u-" + name);
    const std::scoped_lock lock(mutex_);
    ++applied_;
    maps_.at(name).stamp = find((*wanted)->meta.annotations, "example.com/keys").value_or("none");
    changed(name);
    response.set_content(json(name), "application/json");
  }

  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Map> maps_;
  std::vector<std::string> events_;  // the name of each changed ConfigMap; the index is its version
  std::size_t applied_ = 0;
  std::atomic<bool> ending_ = false;
};

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return false;
}

TEST(KubeExample, StampsWhatIsThereAndWhatChanges) {
  FakeApi api;
  api.put("a", 2);
  const SystemClock clock;
  HttpLoop loop;
  Client client(loop, {.server = api.address()}, clock);
  std::atomic<bool> stop = false;
  std::thread stamper([&] { example::runStamper(client, stop); });
  EXPECT_TRUE(eventually([&] { return api.stamp("a") == "2"; }));
  api.put("a", 3);
  api.put("b", 1);
  EXPECT_TRUE(eventually([&] { return api.stamp("a") == "3" && api.stamp("b") == "1"; }));
  stop = true;
  stamper.join();
  EXPECT_GE(api.applied(), 3u);
}

std::string readFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(KubeExample, IsTheOneInTheDocuments) {
  const std::string code = readFile("mbcas/kube/example/stamper.cc");
  const std::string mark = "// [example]\n";
  const std::size_t begin = code.find(mark) + mark.size();
  const std::string example = code.substr(begin, code.find(mark, begin) - begin);
  ASSERT_GT(example.size(), 500u);
  EXPECT_LE(std::ranges::count(example, '\n'), 40);
  EXPECT_NE(readFile("mbcas/kube/README.md").find(example), std::string::npos);
  EXPECT_NE(readFile("docs/kube-runtime.md").find(example), std::string::npos);
}

}  // namespace
}  // namespace mbcas::kube
