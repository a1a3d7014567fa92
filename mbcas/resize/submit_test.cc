// submit() against a server of the test's own, which answers what a real one does too rarely.
#include <gtest/gtest.h>
#include <httplib.h>

#include <deque>
#include <thread>

#include "mbcas/base/clock.h"
#include "mbcas/resize/pod_text.h"
#include "mbcas/resize/resize.h"

namespace mbcas::resize {
namespace {

using namespace literals;

std::string podJson(const std::string& uid, const std::string& limit, int generation) {
  return fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"n","uid":"{}","generation":{},"resourceVersion":"9"}},
      "spec":{{"nodeName":"node","containers":[{{"name":"main",{}}}]}}}})",
      uid, generation, resources("100m", limit));
}

constexpr const char* kConflict =
    R"({"kind":"Status","status":"Failure","reason":"Conflict","code":409,"message":"try again"})";

class SubmitTest : public testing::Test {
 protected:
  void SetUp() override {
    server.Get(".*", [this](const httplib::Request&, httplib::Response& response) {
      ++gets;
      response.set_content(read, "application/json");
    });
    server.Patch(".*", [this](const httplib::Request& patch, httplib::Response& response) {
      ++patches;
      last = patch;
      if (conflicts-- > 0) response.status = 409;
      response.set_content(response.status == 409 ? kConflict : podJson("u1", "300m", 2),
                           "application/json");
    });
    server.set_keep_alive_max_count(1);  // stop() would wait for idle connections
    const int port = server.bind_to_any_port("127.0.0.1");
    thread = std::thread([this] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::yield();
    client = std::make_unique<kube::Client>(
        loop, kube::ClientConfig{.server = fmt::format("http://127.0.0.1:{}", port)}, clock);
  }
  void TearDown() override {
    client.reset();
    server.stop();
    thread.join();
  }

  const std::shared_ptr<const kube::Pod> pod = podText({.main = resources("100m", "200m")});
  const Request request{.containers = {{.name = "main", .limit = 300_m}}};
  std::string read = podJson("u1", "200m", 1);
  int conflicts = 0;
  int gets = 0;
  int patches = 0;
  httplib::Request last;

  SystemClock clock;
  kube::HttpLoop loop;
  std::unique_ptr<kube::Client> client;
  httplib::Server server;
  std::thread thread;
};

TEST_F(SubmitTest, RemembersWhatIsNeededToJudge) {
  const Outcome outcome = submit(*client, *pod, request, {.field_manager = "me", .dry_run = true});
  ASSERT_EQ(outcome.verdict, Verdict::kAccepted) << outcome.message;
  EXPECT_EQ(outcome.attempt->generation, 2);
  EXPECT_EQ(outcome.attempt->resource_version, "9");
  EXPECT_TRUE(outcome.attempt->changed);
  EXPECT_EQ(last.path, "/api/v1/namespaces/n/pods/p/resize");
  EXPECT_EQ(last.get_header_value("Content-Type"), "application/strategic-merge-patch+json");
  EXPECT_EQ(last.get_param_value("fieldManager"), "me");
  EXPECT_EQ(last.get_param_value("dryRun"), "All");
  EXPECT_EQ(gets, 0);
}

TEST_F(SubmitTest, TriesAgainAfterAConflict) {
  conflicts = 2;
  EXPECT_EQ(submit(*client, *pod, request).verdict, Verdict::kAccepted);
  EXPECT_EQ(patches, 3);
  EXPECT_EQ(gets, 2);
}

// Between a decision and its patch another writer may have resized the pod.
TEST_F(SubmitTest, OverwritesNothingThatItDidNotSee) {
  conflicts = 1;
  read = podJson("u1", "700m", 2);
  const Outcome outcome = submit(*client, *pod, request, {.only_if_unchanged = true});
  EXPECT_EQ(outcome.verdict, Verdict::kSuperseded) << outcome.message;
  EXPECT_EQ(patches, 1);
  EXPECT_TRUE(last.body.contains(R"("resourceVersion")")) << last.body;
  // A change of its status is no obstacle.
  conflicts = 1;
  patches = 0;
  read = podJson("u1", "200m", 1);
  EXPECT_EQ(submit(*client, *pod, request, {.only_if_unchanged = true}).verdict,
            Verdict::kAccepted);
  EXPECT_EQ(patches, 2);
}

TEST_F(SubmitTest, NotForEver) {
  conflicts = 1000;
  EXPECT_EQ(submit(*client, *pod, request, {.conflict_tries = 3}).verdict, Verdict::kUnreachable);
  EXPECT_EQ(patches, 3);
}

TEST_F(SubmitTest, ChecksAgainWhatTheConflictWasAbout) {
  conflicts = 1;
  read = podJson("u2", "200m", 1);
  EXPECT_EQ(submit(*client, *pod, request).verdict, Verdict::kGone);
  EXPECT_EQ(patches, 1);
}

TEST_F(SubmitTest, SendsNothingThatMustFail) {
  EXPECT_EQ(submit(*client, *pod, {.containers = {{.name = "other", .limit = 1_m}}}).refusal,
            Refusal::kNoSuchContainer);
  const auto finished =
      podText({.main = resources("100m", "200m"), .status = R"("phase":"Succeeded")"});
  EXPECT_EQ(submit(*client, *finished, request).verdict, Verdict::kGone);
  EXPECT_EQ(patches, 0);
}

TEST_F(SubmitTest, NobodyAnswers) {
  kube::Client lost(loop, {.server = "http://127.0.0.1:1"}, clock, {.max_retries = 0});
  EXPECT_EQ(submit(lost, *pod, request).verdict, Verdict::kUnreachable);
}

}  // namespace
}  // namespace mbcas::resize
