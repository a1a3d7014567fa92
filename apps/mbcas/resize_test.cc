// `mbcas resize` as its users run it, on a real kube-apiserver with a fake kubelet.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "test/integration/kube_fixture.h"
#include "test/support/command.h"
#include "test/support/fake_kubelet.h"

namespace mbcas::test {
namespace {

using namespace kube;
using Behaviour = FakeKubelet::Behaviour;

class ResizeCommandTest : public KubeTest {
 protected:
  void SetUp() override {
    KubeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    node = "node-" + ns;
    kubelet = std::make_unique<FakeKubelet>(*admin, FakeKubelet::Options{.node = node});
    pod = ns + "/p";
    createPod(fmt::format(
        R"({{"metadata":{{"name":"p"}},"spec":{{"nodeName":"{}","containers":[
        {{"name":"main","image":"x","resources":{{"requests":{{"cpu":"100m"}},"limits":{{"cpu":"300m"}}}}}},
        {{"name":"side","image":"x","resources":{{"requests":{{"cpu":"50m"}},"limits":{{"cpu":"100m"}}}}}},
        {{"name":"free","image":"x"}}]}}}})",
        node));
    ASSERT_TRUE(
        eventually([&] { return (*admin->get<Pod>(ns, "p"))->phase == PodPhase::kRunning; }));
  }
  void TearDown() override { kubelet.reset(); }

  Outcome run(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {MBCAS_BINARY, "resize", "--kubeconfig", plane->kubeconfig()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return runCommand(words);
  }
  // "main/side" as the pod's spec has them.
  std::string limits() const {
    const auto now = *admin->get<Pod>(ns, "p");
    return fmt::format("{}/{}", now->container("main")->limits.cpu()->count(),
                       now->container("side")->limits.cpu()->count());
  }

  std::string node;
  std::string pod;
  std::unique_ptr<FakeKubelet> kubelet;
};

TEST_F(ResizeCommandTest, DividesOverContainersAndWaits) {
  const Outcome done = run({pod, "--cpu", "795m", "--wait", "--timeout", "90s"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, pod + ": main limit 300m -> 600m, side limit 100m -> 200m: done\n");
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(limits(), "600/200");
}

TEST_F(ResizeCommandTest, OneContainerInTheNamespaceOfAFlag) {
  const Outcome done = run({"-n", ns, "p", "--container", "side", "--cpu", "0.75"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, pod + ": side limit 100m -> 750m: accepted\n");
  EXPECT_EQ(limits(), "300/750");
  const Outcome both = run({pod, "-c", "side", "-c", "main", "--cpu", "2100m"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(limits(), "600/1500");
}

TEST_F(ResizeCommandTest, Requests) {
  const Outcome done = run({pod, "-c", "main", "--cpu", "200m", "--policy", "requests"});
  EXPECT_EQ(done.out, pod + ": main request 100m -> 200m: accepted\n") << done.err;
}

TEST_F(ResizeCommandTest, DryRuns) {
  for (const char* flag : {"--dry-run", "--dry-run=server", "--dry-run=client"}) {
    const Outcome done = run({flag, pod, "--cpu", "800m"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("would be accepted"), std::string::npos) << done.out;
  }
  EXPECT_EQ(limits(), "300/100");
}

TEST_F(ResizeCommandTest, Json) {
  const Outcome done =
      run({pod, "-c", "main", "--cpu", "800m", "--wait", "-o", "json", "--timeout", "90"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json.at("verdict"), "Done");
  EXPECT_EQ(json.at("namespace"), ns);
  EXPECT_EQ(json.at("containers"),
            nlohmann::json::parse(R"([{"name":"main","limit":{"from":"300m","to":"800m"}}])"));
  const Outcome refused = run({pod, "-c", "none", "--cpu", "1", "-o", "json"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(refused.out).at("refusal"), "NoSuchContainer");
}

TEST_F(ResizeCommandTest, SaysWhyNot) {
  const auto complaint = [&](const std::vector<std::string>& arguments) {
    const Outcome failed = run(arguments);
    EXPECT_EQ(failed.exit_code, 1) << failed.out;
    EXPECT_EQ(failed.out, "");
    EXPECT_EQ(std::ranges::count(failed.err, '\n'), 1) << failed.err;
    return failed.err;
  };
  const std::string prefix = "mbcas resize: " + pod + ": ";
  EXPECT_EQ(
      complaint({pod, "--cpu", "100m"}),
      prefix + "Rejected (RequestAboveLimit): 100m is below what its containers request, 150m\n");
  EXPECT_EQ(complaint({pod, "-c", "none", "--cpu", "1"}),
            prefix + "Rejected (NoSuchContainer): no container none\n");
  EXPECT_EQ(complaint({pod, "-c", "free", "--cpu", "1"}),
            prefix +
                "Rejected (NoLimit): container free: has no CPU limit, and one that is added "
                "can never be removed\n");
  EXPECT_EQ(complaint({ns + "/q", "--cpu", "1"}),
            "mbcas resize: " + ns + "/q: Gone: 404 NotFound: pods \"q\" not found\n");
  EXPECT_EQ(
      complaint({pod, "--cpu", "1", "--context", "none"}).rfind("mbcas resize: kubeconfig ", 0),
      0u);
  kubelet->behave(Behaviour::kRefuse);
  EXPECT_EQ(complaint({pod, "--cpu", "10000", "--wait", "--timeout", "90s"}),
            prefix + "Infeasible: the kubelet says Infeasible: as the test wants it\n");
  kubelet->behave(Behaviour::kSilent);
  EXPECT_EQ(
      complaint({pod, "--cpu", "2", "--wait", "--timeout", "2s"}).rfind(prefix + "TimedOut", 0),
      0u);
}

TEST_F(ResizeCommandTest, Usage) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{pod},
                                             {"--cpu", "1"},
                                             {pod, "--cpu", "much"},
                                             {pod, "--cpu", "-1"},
                                             {pod, "--cpu", "0"},
                                             {pod, "--cpu", "1", "--dry-run=maybe"},
                                             {pod, "--cpu", "1", "--policy", "all"},
                                             {pod, "--cpu", "1", "--timeout", "soon"},
                                             {pod, "--cpu", "1", "-o", "xml"},
                                             {"a/b/c", "--cpu", "1"},
                                             {"/p", "--cpu", "1"}}) {
    EXPECT_EQ(run(arguments).exit_code, 2) << fmt::format("{}", fmt::join(arguments, " "));
  }
  EXPECT_EQ(limits(), "300/100");
}

TEST_F(ResizeCommandTest, NobodyAnswers) {
  const Outcome failed = runCommand({MBCAS_BINARY, "resize", "a/p", "--cpu", "1", "--timeout", "1s",
                                     "--kubeconfig", "/nonexistent"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_TRUE(failed.err.starts_with("mbcas resize: kubeconfig: cannot read /nonexistent; "))
      << failed.err;
}

}  // namespace
}  // namespace mbcas::test
