// doctor, pods, explain and top as their users run them, on a cluster that was written down.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "test/support/command.h"
#include "test/support/golden.h"
#include "test/support/recorded_server.h"

namespace mbcas::test {
namespace {

using nlohmann::json;

json toJson(const YAML::Node& node) {
  json value;
  if (node.IsMap()) {
    for (const auto& member : node) value[member.first.Scalar()] = toJson(member.second);
  } else if (node.IsSequence()) {
    for (const auto& element : node) value.push_back(toJson(element));
  } else if (node.IsNull()) {
    value = "null";
  } else {
    value = node.Scalar();
  }
  return value;
}

// One line, soon, whatever is wrong with the cluster.
void expectOneLine(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

class ClusterCommands : public testing::Test {
 protected:
  // The cluster has the policies that this version installs.
  ClusterCommands() {
    json objects;
    for (const auto& file : std::filesystem::directory_iterator("config/policy")) {
      if (file.path().extension() != ".yaml") continue;
      for (const YAML::Node& document : YAML::LoadAllFromFile(file.path())) {
        const json object = toJson(document);
        const std::string kind = object["kind"];
        if (!kind.starts_with("ValidatingAdmissionPolicy")) continue;
        objects["/apis/admissionregistration.k8s.io/v1 validatingadmissionpolic" +
                std::string(kind.ends_with("Binding") ? "ybindings" : "ies")]
            .push_back(object);
      }
    }
    server.change(json{{"objects", objects}}.dump());
  }

  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), MBCAS_BINARY);
    words.insert(words.end(), {"--kubeconfig", server.kubeconfig()});
    return runCommand(std::move(words));
  }
  // Its output, with the server's port and the present time left out.
  void expect(const std::string& golden, const std::vector<std::string>& words,
              int exit_code = 0) const {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    std::string text = outcome.out + outcome.err;
    text = std::regex_replace(text, std::regex("127\\.0\\.0\\.1:[0-9]+"), "SERVER");
    text = std::regex_replace(text, std::regex(R"re("(time|ageSeconds)":("[^"]*"|[0-9.]+))re"),
                              R"("$1":0)");
    expectGolden("test/golden/cli/" + golden, text);
  }

  RecordedServer server{"test/golden/cli/cluster.json"};
};

TEST_F(ClusterCommands, Doctor) {
  expect("cluster-doctor.txt", {"doctor"});
  expect("cluster-doctor-shop.json", {"doctor", "-n", "shop", "-o", "json"});
}

TEST_F(ClusterCommands, PodsList) {
  expect("cluster-pods-list.txt", {"pods", "list"});
  expect("cluster-pods-list-all.txt", {"pods", "list", "-A", "-o", "wide"});
  expect("cluster-pods-list-web.json", {"pods", "list", "-l", "app=web", "-o", "json"});
  expect("cluster-pods-list-none.txt", {"pods", "list", "-n", "empty"});
}

TEST_F(ClusterCommands, PodsUsage) {
  expect("cluster-pods-usage.txt", {"pods", "usage"});
  expect("cluster-pods-usage-node.txt", {"pods", "usage", "-A", "--node", "node-1"});
}

TEST_F(ClusterCommands, Explain) {
  expect("cluster-explain-web.txt", {"explain", "web-1"});
  expect("cluster-explain-web.json", {"explain", "shop/web-1", "-o", "json"});
  expect("cluster-explain-batch.txt", {"explain", "-n", "shop", "batch-1"});
  expect("cluster-explain-gold.txt", {"explain", "shop/gold-1"});
  expect("cluster-explain-nobody.txt", {"explain", "shop/nobody"}, 1);
}

TEST_F(ClusterCommands, Top) {
  expect("cluster-top.txt", {"top"});
  expect("cluster-top-all.txt", {"top", "-A", "-o", "wide", "--sort", "pod"});
  expect("cluster-top-web.json", {"top", "-l", "app=web", "-o", "json"});
}

TEST_F(ClusterCommands, Diff) {
  EXPECT_NE(run({"diff", "-A"}).err.find("nothing differs"), std::string::npos)
      << "whose limit it is, nobody has said";
  const char* const kind = "/apis/allocation.mbcas.io/v1alpha1 podallocations";
  json allocations = json::parse(server.content())["objects"][kind];
  for (json& allocation : allocations) {
    if (allocation["spec"]["podName"] != "web-1") continue;
    allocation["spec"]["containers"] = {{{"name", "server"}, {"desiredCPULimit", "800m"}},
                                        {{"name", "proxy"}, {"desiredCPULimit", "100m"}}};
  }
  server.change(json{{"objects", {{kind, allocations}}}}.dump());
  expect("cluster-diff.txt", {"diff", "-A"});
  expect("cluster-diff.yaml", {"diff", "-o", "yaml"});
  expect("cluster-diff.json", {"diff", "-o", "json"});
  EXPECT_EQ(run({"diff", "-n", "empty"}).exit_code, 0);
}

TEST_F(ClusterCommands, Report) {
  const json quota = json::parse(R"({
    "metadata": {"name": "cpu", "namespace": "shop"},
    "spec": {"hard": {"limits.cpu": "4"}},
    "status": {"hard": {"limits.cpu": "4"}, "used": {"limits.cpu": "3900m"}}})");
  server.change(json{{"objects", {{"/api/v1 resourcequotas", json::array({quota})}}}}.dump());
  const json report = json::parse(run({"report", "--for", "2s", "-o", "json"}).out);
  EXPECT_EQ(report["nodes"], json::array({"node-1"}));
  EXPECT_EQ(report["notes"], json::array());
  ASSERT_EQ(report["containers"].size(), 4u) << report;
  const json& server_of_web = report["containers"][3];
  EXPECT_EQ(server_of_web["container"], "server");
  EXPECT_EQ(server_of_web["declared"], 400);
  EXPECT_EQ(server_of_web["desired"], 780);
  ASSERT_EQ(report["quotas"].size(), 1u) << report;
  EXPECT_EQ(report["quotas"][0], (json{{"namespace", "shop"},
                                       {"quota", "cpu"},
                                       {"resource", "limits.cpu"},
                                       {"hard", 4000},
                                       {"used", 3900}}));
  // What is looked for most comes first.
  const Outcome text = run({"report", "--for", "2s"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  std::size_t at = 0;
  for (const char* const part :
       {"3 managed pods on 1 node", "\nRequests far from use\n", "\nThrottled pod-hours\n",
        "(measured)", "(estimated)", "\nLimits\n", "\nQuota\n", "short\n", "\nNamespaces\n"}) {
    const std::size_t found = text.out.find(part, at);
    EXPECT_NE(found, std::string::npos) << part << " is missing, or not here:\n" << text.out;
    if (found != std::string::npos) at = found;
  }
  EXPECT_TRUE(run({"report", "--for", "2s", "-o", "html"}).out.starts_with("<!DOCTYPE html>"));
  const Outcome other = run({"report", "--for", "1s", "-n", "kube-system"});
  expectOneLine(other);
  EXPECT_EQ(other.err, "mbcas report: no managed pod was seen\n");
}

TEST_F(ClusterCommands, NamesForScripts) {
  EXPECT_EQ(run({"pods", "list", "-o", "name", "-l", "app=web"}).out, "pod/web-1\n");
  EXPECT_EQ(run({"top", "-o", "name", "-l", "app=web"}).out, "pod/web-1\n");
  EXPECT_EQ(run({"explain", "pod/web-1", "-o", "name"}).out, "pod/web-1\n");
  EXPECT_EQ(run({"pause", "--dry-run", "-o", "name"}).out, "configmap/mbcas\n");
  const Outcome doctor = run({"doctor", "-o", "name"});
  EXPECT_NE(doctor.out.find("ok/server\n"), std::string::npos) << doctor.out;
}

TEST_F(ClusterCommands, APodByItsKind) {
  for (const char* name : {"pod/web-1", "pods/web-1", "shop/web-1"}) {
    const Outcome outcome = run({"explain", name});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("shop/web-1 on node-1"), std::string::npos) << outcome.out;
  }
}

json workload(const std::string& name, const std::string& app) {
  return {{"metadata", {{"name", name}, {"namespace", "shop"}}},
          {"spec", {{"selector", {{"matchLabels", {{"app", app}}}}}}}};
}

TEST_F(ClusterCommands, AWorkloadIsItsPods) {
  json pods = json::parse(server.content())["objects"]["/api/v1 pods"];
  for (json& pod : pods) {
    if (pod["metadata"]["name"] == "batch-1" || pod["metadata"]["name"] == "cache-1" ||
        pod["metadata"]["name"] == "done-1") {
      pod["metadata"]["labels"]["app"] = "batch";
    }
  }
  const json objects = {
      {"/api/v1 pods", pods},
      {"/apis/apps/v1 deployments",
       {workload("web", "web"), workload("batch", "batch"), workload("none", "none")}}};
  server.change(json{{"objects", objects}}.dump());

  const Outcome one = run({"explain", "deploy/web"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out, run({"explain", "web-1"}).out);
  EXPECT_EQ(one.err, "");

  // A pod that has finished is none of them; the others are all said to be meant.
  const Outcome several = run({"explain", "-n", "shop", "deployments/batch"});
  EXPECT_EQ(several.exit_code, 0) << several.err;
  EXPECT_EQ(several.err, "mbcas explain: deployments/batch is 2 pods: batch-1, cache-1\n");
  EXPECT_NE(several.out.find("shop/batch-1 on node-1"), std::string::npos);
  EXPECT_NE(several.out.find("shop/cache-1 on node-1"), std::string::npos);
  const json both = json::parse(run({"explain", "deploy/batch", "-o", "json"}).out);
  EXPECT_EQ(both["pods"].size(), 2u);
  EXPECT_EQ(run({"explain", "deploy/batch", "-o", "name"}).out, "pod/batch-1\npod/cache-1\n");

  const Outcome none = run({"explain", "deploy/none"});
  expectOneLine(none);
  EXPECT_NE(none.err.find("has no pods that run; kubectl -n shop describe deployments/none"),
            std::string::npos)
      << none.err;
  const Outcome missing = run({"restore", "deploy/absent"});
  expectOneLine(missing);
  EXPECT_NE(missing.err.find("; kubectl -n shop get deployments lists what there is"),
            std::string::npos)
      << missing.err;
}

// Requests that change something.
std::size_t writes(const RecordedServer& server) {
  std::size_t count = 0;
  for (const std::string& request : server.requests()) {
    const bool asks = request.starts_with("GET") || request.find("reviews") != std::string::npos ||
                      request.find("dryRun=All") != std::string::npos;
    count += asks ? 0 : 1;
  }
  return count;
}

TEST_F(ClusterCommands, ADryRunChangesNothing) {
  for (const char* const where : {"--dry-run=client", "--dry-run", "--dry-run=server"}) {
    SCOPED_TRACE(where);
    const std::string kind = std::string_view(where) == "--dry-run=client" ? "client" : "server";
    const Outcome pause = run({"pause", where});
    EXPECT_EQ(pause.out, "would be paused (" + kind + " dry run)\n") << pause.err;
    const Outcome resume = run({"resume", where, "-o", "json"});
    EXPECT_EQ(json::parse(resume.out), (json{{"paused", false}, {"dryRun", kind}})) << resume.err;
    EXPECT_EQ(writes(server), 0u);
  }
  const std::string would =
      "shop/batch-1: would be restored (client dry run): main limit 1200m -> 2000m\n";
  const Outcome one = run({"restore", "batch-1", "--dry-run=client"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out, would);
  const Outcome all = run({"restore", "--all", "--dry-run=client"});
  EXPECT_NE(all.out.find(would), std::string::npos) << all.out << all.err;
  const json report =
      json::parse(run({"restore", "batch-1", "--dry-run=client", "-o", "json"}).out);
  EXPECT_EQ(report["dryRun"], "client");
  EXPECT_EQ(report["pods"][0]["pod"], "batch-1");
  EXPECT_EQ(run({"restore", "web-1", "--dry-run", "-o", "json"}).exit_code, 0);
  EXPECT_EQ(writes(server), 0u);
  // The other way round: it would be seen.
  EXPECT_EQ(run({"pause"}).exit_code, 0);
  EXPECT_EQ(writes(server), 1u);
}

TEST_F(ClusterCommands, Mode) {
  EXPECT_EQ(run({"mode"}).out,
            "SCOPE        MODE  SET BY\nthe cluster  full  ConfigMap mbcas-system/mbcas\n");
  EXPECT_EQ(run({"mode", "recommend"}).out,
            "the cluster has mode recommend: no limit is changed; PodAllocations say what would be "
            "set\n");
  EXPECT_EQ(
      run({"mode", "raise-only", "-n", "shop", "--dry-run"}).out,
      "namespace shop would have mode raise-only: limits are raised, never set below what was "
      "declared (server dry run)\n");
  EXPECT_EQ(run({"mode", "--reset", "-n", "shop", "-o", "name"}).out, "namespace/shop\n");
  const std::vector<std::string> asked = server.requests();
  const auto wrote = [&](const std::string& what) {
    return std::ranges::count_if(asked, [&](const auto& each) { return each.find(what) == 0; });
  };
  EXPECT_EQ(wrote("PATCH /api/v1/namespaces/mbcas-system/configmaps/mbcas"), 1);
  EXPECT_EQ(wrote("PATCH /api/v1/namespaces/shop"), 2);

  json content = {{"objects", {{"/apis/apps/v1 deployments", json::array()}}}};
  content["objects"]["/apis/apps/v1 deployments"].push_back(json::parse(R"({
    "metadata": {"name": "mbcas-controller", "namespace": "mbcas-system", "labels": {
      "app.kubernetes.io/part-of": "mbcas", "app.kubernetes.io/component": "controller"}},
    "spec": {"template": {"spec": {"containers": [
      {"name": "controller", "args": ["--mode=raise-only", "--dry-run"]}]}}}})"));
  json namespaces = json::parse(server.content())["objects"]["/api/v1 namespaces"];
  for (json& each : namespaces) {
    if (each["metadata"]["name"] == "shop") each["metadata"]["labels"]["mbcas.io/mode"] = "off";
  }
  content["objects"]["/api/v1 namespaces"] = namespaces;
  json maps = json::parse(server.content())["objects"]["/api/v1 configmaps"];
  maps[0]["data"].erase("mode");
  content["objects"]["/api/v1 configmaps"] = maps;
  server.change(content.dump());
  const Outcome shown = run({"mode"});
  EXPECT_EQ(shown.out,
            "SCOPE        MODE        SET BY\n"
            "the cluster  raise-only  the controller's flag --mode\n"
            "shop         off         label mbcas.io/mode\n");
  EXPECT_NE(shown.err.find("the controller runs with --dry-run"), std::string::npos) << shown.err;
  EXPECT_EQ(json::parse(run({"mode", "-o", "json"}).out), (json{{"cluster", "raise-only"},
                                                                {"namespaces", {{"shop", "off"}}},
                                                                {"controllerDryRun", true}}));
  const Outcome set = run({"mode", "full"});
  EXPECT_NE(set.err.find("sets that mode again when another replica begins to lead"),
            std::string::npos)
      << set.err;
  content["objects"]["/apis/apps/v1 deployments"][0]["spec"]["template"]["spec"]["containers"][0]
         ["args"] = json::array({"--initial-mode=recommend"});
  server.change(content.dump());
  const Outcome initial = run({"mode"});
  EXPECT_EQ(initial.out,
            "SCOPE        MODE       SET BY\n"
            "the cluster  recommend  the controller's flag --initial-mode\n"
            "shop         off        label mbcas.io/mode\n");
  EXPECT_EQ(initial.err, "");
  EXPECT_EQ(run({"mode", "full"}).err, "");
  EXPECT_EQ(run({"mode", "fast"}).exit_code, 2);
  EXPECT_EQ(run({"mode", "full", "--reset"}).exit_code, 2);
}

TEST_F(ClusterCommands, BeforeAnInstallation) {
  expect("cluster-pre.txt", {"doctor", "--pre"});
  // Much is in the way.
  json content = {
      {"forbidden",
       {"create namespaces", "create daemonsets", "escalate clusterroles", "patch pods/resize"}}};
  json nodes = json::parse(server.content())["objects"]["/api/v1 nodes"];
  nodes[0]["status"]["nodeInfo"]["architecture"] = "s390x";
  content["objects"]["/api/v1 nodes"] = nodes;
  server.change(content.dump());
  server.fail("/api/v1/namespaces/mbcas-system/pods", 403, "Forbidden",
              "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical "
              "system-cluster-critical]}]");
  expect("cluster-pre-problems.txt", {"doctor", "--pre"}, 1);
  const auto about_images = [&](const std::string& architectures) {
    const Outcome outcome = runCommand({MBCAS_BINARY, "doctor", "--pre", "--architectures",
                                        architectures, "--kubeconfig", server.kubeconfig()});
    return outcome.out.find("the images are for") != std::string::npos;
  };
  EXPECT_TRUE(about_images("amd64,arm64"));
  EXPECT_FALSE(about_images("amd64,s390x"));
  EXPECT_EQ(writes(server), 0u) << "it only asks";
}

constexpr const char* kAgent = "/api/v1/namespaces/mbcas-system/pods/mbcas-agent-x7k2p";

TEST_F(ClusterCommands, AgentsThatMayNotBeObserved) {
  server.fail(std::string(kAgent) + "/exec", 403, "Forbidden",
              R"(pods "mbcas-agent-x7k2p" is forbidden: User "jane" cannot get resource )"
              R"("pods/exec" in API group "" in the namespace "mbcas-system")");
  expect("cluster-top-no-state.txt", {"top"});
  // The decision log tells, if less.
  expect("cluster-explain-log.txt", {"explain", "web-1"});
  const Outcome report = run({"report", "--for", "2s"});
  expectOneLine(report);
  EXPECT_NE(report.err.find("--role mbcas-observe"), std::string::npos) << report.err;
  server.fail(std::string(kAgent) + "/log", 403, "Forbidden", "you may not read logs");
  expect("cluster-explain-no-log.txt", {"explain", "web-1"});
}

TEST_F(ClusterCommands, WhatMayNotBeRead) {
  for (const char* path : {"/api/v1/nodes", "/api/v1/namespaces", "/api/v1/limitranges",
                           "/apis/coordination.k8s.io/v1/namespaces/mbcas-system/leases",
                           "/api/v1/namespaces/mbcas-system/configmaps/mbcas",
                           "/api/v1/nodes/node-1/proxy/stats/summary"}) {
    server.fail(path, 403, "Forbidden", "not for you");
  }
  expect("cluster-forbidden-doctor.txt", {"doctor"});
  expect("cluster-forbidden-pods.txt", {"pods", "list", "-A"});
  expect("cluster-forbidden-usage.txt", {"pods", "usage"}, 1);
  server.fail("/api/v1/namespaces/shop/pods", 403, "Forbidden", "pods are not for you");
  expect("cluster-forbidden-top.txt", {"top"}, 1);
  expect("cluster-forbidden-list.txt", {"pods", "list"}, 1);
}

TEST_F(ClusterCommands, MbcasIsNotInstalled) {
  for (const char* path : {"/apis/allocation.mbcas.io/v1alpha1",
                           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                           "podallocations.allocation.mbcas.io",
                           "/apis/allocation.mbcas.io/v1alpha1/podallocations",
                           "/apis/allocation.mbcas.io/v1alpha1/namespaces/shop/podallocations"}) {
    server.fail(path, 404, "NotFound", "the server could not find the requested resource");
  }
  expect("cluster-bare-doctor.txt", {"doctor", "-n", "shop"}, 1);
  expect("cluster-bare-pods.txt", {"pods", "list"});
  expect("cluster-bare-top.txt", {"top"});
  expect("cluster-bare-explain.txt", {"explain", "web-1"});
}

TEST_F(ClusterCommands, APodThatCannotBeRead) {
  json pods = json::parse(server.content())["objects"]["/api/v1 pods"];
  json odd = pods[0];
  odd["metadata"]["name"] = "odd-1";
  odd["spec"]["containers"] = "none at all";
  pods.push_back(odd);
  server.change(json{{"objects", {{"/api/v1 pods", pods}}}}.dump());
  const Outcome outcome = run({"doctor"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
  EXPECT_NE(outcome.out.find("unreadable   problem  Pod shop/odd-1 is passed over"),
            std::string::npos)
      << outcome.out;
  const Outcome list = run({"pods", "list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_NE(list.out.find("web-1"), std::string::npos) << list.out;
}

// Everything that a tenant can choose says what a terminal would obey: colours, a title, the end of
// a line, another direction of writing.
const std::string kHostile = "\x1b[31m\x07\r\nFORGED\u009b2J\x7f\u202e\u2066 <b>&";

void poison(json& value, const std::string& key = "") {
  static const std::set<std::string> kChosen = {
      "reason", "message",    "holderIdentity", "kubeletVersion", "leftAlone",    "gitVersion",
      "basis",  "burstState", "heldBy",         "annotations",    "mbcas.io/mode"};
  if (value.is_structured()) {
    // A container's or a LimitRange's name; not one by which objects are found.
    if (value.is_object() && value.contains("name") && !value.contains("namespace") &&
        value["name"].is_string() && (value.contains("resources") || value.contains("usePeak"))) {
      value["name"] = value["name"].get<std::string>() + kHostile;
    }
    for (auto& [name, child] : value.items()) {
      poison(child, kChosen.contains(key) && value.is_object() ? key
                    : value.is_array()                         ? key
                                                               : name);
    }
  } else if (value.is_string() && kChosen.contains(key)) {
    value = value.get<std::string>() + kHostile;
  }
}

void expectHarmless(const std::string& text, const std::string& what) {
  static const std::regex kObeyed(
      "[\\x01-\\x09\\x0b-\\x1f\\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|"
      "\xe2\x81[\xa6-\xa9]");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(text, found, kObeyed)) << what << "\n" << found.prefix();
  EXPECT_EQ(text.find("\nFORGED"), std::string::npos) << what << "\n" << text;
}

// As toJson() has it of YAML, whose scalars are all texts there. Times differ between two calls.
json scalarsAsText(const json& value, const std::string& key = "") {
  json text;
  if (key == "time" || key == "ageSeconds") return 0;
  if (value.is_object()) {
    for (const auto& [name, child] : value.items()) text[name] = scalarsAsText(child, name);
  } else if (value.is_array()) {
    for (const json& child : value) text.push_back(scalarsAsText(child));
  } else if (value.is_number_float()) {
    text = fmt::format("{}", value.get<double>());
  } else {
    text = value.is_string() ? value : json(value.dump());
  }
  return text.is_null() ? json("null") : text;
}

TEST_F(ClusterCommands, NobodyElseSpeaksToTheTerminal) {
  json hostile = json::parse(server.content());
  poison(hostile["objects"]);
  for (auto& [path, text] : hostile["texts"].items()) {
    if (!text.is_string()) {
      poison(text);
      continue;
    }
    // Lines of JSON, or one document.
    std::string poisoned;
    json whole = json::parse(text.get<std::string>(), nullptr, false);
    if (!whole.is_discarded()) {
      poison(whole);
      poisoned = whole.dump();
    } else {
      std::istringstream lines(text.get<std::string>());
      for (std::string line; std::getline(lines, line);) {
        json parsed = json::parse(line, nullptr, false);
        if (!parsed.is_discarded()) poison(parsed);
        poisoned += (parsed.is_discarded() ? line + kHostile : parsed.dump()) + "\n";
      }
    }
    text = poisoned;
  }
  hostile["objects"]["/api/v1 namespaces"][0]["metadata"]["labels"]["mbcas.io/mode"] = kHostile;
  hostile["objects"]["/apis/scheduling.k8s.io/v1 priorityclasses"][0]["metadata"]["name"] =
      kHostile;
  for (json& pod : hostile["objects"]["/api/v1 pods"]) {
    if (pod["metadata"]["name"] == "plain-1") {
      pod["metadata"]["annotations"]["mbcas.io/max-cpu"] = kHostile;
    }
    if (pod["metadata"]["name"] == "gold-1") {
      pod["metadata"]["annotations"]["mbcas.io/original-resources"] = kHostile;
    }
  }
  server.change(hostile.dump());

  std::size_t seen = 0;
  json as_json;
  const auto look = [&](const std::vector<std::string>& words) {
    std::string what;
    for (const std::string& word : words) what += word + " ";
    const Outcome outcome = run(words);
    expectHarmless(outcome.out, what);
    expectHarmless(outcome.err, what);
    if (outcome.out.find("FORGED") != std::string::npos) ++seen;
    if (words.back() == "json") {
      const json parsed = json::parse(outcome.out, nullptr, false);
      EXPECT_FALSE(parsed.is_discarded()) << what << outcome.out;
      as_json = parsed;
    }
    // The same in YAML, whatever texts do to break out of their places.
    if (words.back() == "yaml") {
      EXPECT_EQ(scalarsAsText(toJson(YAML::Load(outcome.out))), scalarsAsText(as_json))
          << what << outcome.out;
    }
  };
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"doctor"},
                                             {"pods", "list", "-A"},
                                             {"pods", "usage", "-A"},
                                             {"top", "-A", "--once"},
                                             {"explain", "web-1"},
                                             {"explain", "batch-1"},
                                             {"explain", "gold-1"},
                                             {"explain", "plain-1"},
                                             {"resize", "web-1", "--cpu", "1", "--dry-run"},
                                             {"resize", "gold-1", "--cpu", "1"},
                                             {"restore", "gold-1"},
                                             {"restore", "--all"}}) {
    look(words);
    if (words[0] == "restore") continue;
    for (const char* const format : {"wide", "json", "yaml", "name"}) {
      if (std::string_view(format) == "wide" && words[0] != "pods" && words[0] != "top") continue;
      std::vector<std::string> more = words;
      more.insert(more.end(), {"-o", format});
      look(more);
    }
  }
  EXPECT_GT(seen, 12u) << "hostile text must have been shown for this to mean anything";

  // Nor the server that refuses.
  for (const char* const path :
       {"/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/pods/web-1", "/api/v1/pods",
        "/api/v1/nodes", "/api/v1/namespaces/mbcas-system/configmaps/mbcas"}) {
    server.fail(path, 403, "Forbidden", kHostile);
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"doctor"},
                                             {"pods", "list"},
                                             {"pods", "usage"},
                                             {"top"},
                                             {"explain", "web-1"},
                                             {"resize", "web-1", "--cpu", "1"},
                                             {"restore", "web-1"},
                                             {"restore", "--all"},
                                             {"mode"},
                                             {"mode", "full"},
                                             {"pause"},
                                             {"resume"}}) {
    const Outcome outcome = run(words);
    EXPECT_NE((outcome.out + outcome.err).find("FORGED"), std::string::npos) << words.front();
    expectHarmless(outcome.out + outcome.err, words.front());
  }
}

TEST_F(ClusterCommands, WrongArguments) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"explain"},
                                             {"explain", "a/b/c"},
                                             {"explain", "/x"},
                                             {"explain", "x", "-o", "xml"},
                                             {"top", "--sort", "colour"},
                                             {"top", "--interval", "soon"},
                                             {"top", "x"},
                                             {"pods"},
                                             {"pods", "steal"},
                                             {"pods", "list", "-o", "xml"},
                                             {"doctor", "--fix"},
                                             {"completion"},
                                             {"completion", "tcsh"},
                                             {"nonsense"}}) {
    std::vector<std::string> all = words;
    all.insert(all.begin(), MBCAS_BINARY);
    const Outcome outcome = runCommand(all);
    EXPECT_EQ(outcome.exit_code, 2) << words.back();
    EXPECT_FALSE(outcome.err.empty()) << words.back();
    EXPECT_EQ(outcome.out, "") << words.back();
  }
}

const std::vector<std::vector<std::string>> kCommands = {{"pods", "list"},
                                                         {"pods", "usage"},
                                                         {"explain", "x"},
                                                         {"explain", "sts/x"},
                                                         {"top"},
                                                         {"pause"},
                                                         {"mode"},
                                                         {"mode", "off"},
                                                         {"restore", "--all"},
                                                         {"restore", "x"},
                                                         {"resize", "x", "--cpu", "1"}};

// To find out what is wrong is what doctor is for: that is a finding like others.
void expectFinding(const std::vector<std::string>& flags) {
  for (const char* const mode : {"", "--pre"}) {
    for (const char* const format : {"text", "json", "yaml", "name"}) {
      std::vector<std::string> words = {MBCAS_BINARY, "doctor", "-o", format};
      if (*mode != '\0') words.emplace_back(mode);
      words.insert(words.end(), flags.begin(), flags.end());
      const Outcome outcome = runCommand(words);
      EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
      EXPECT_EQ(outcome.err, "");
      if (std::string_view(format) == "json") {
        const json findings = json::parse(outcome.out, nullptr, false);
        ASSERT_FALSE(findings.is_discarded()) << outcome.out;
        EXPECT_EQ(findings["healthy"], false);
        EXPECT_EQ(findings["findings"][0]["level"], "problem");
        EXPECT_EQ(findings["findings"][0]["area"], "server");
        EXPECT_NE(findings["findings"][0]["remedy"], "");
      } else if (std::string_view(format) == "name") {
        EXPECT_EQ(outcome.out, "problem/server\n");
      } else {
        EXPECT_NE(outcome.out.find("server"), std::string::npos) << outcome.out;
      }
    }
  }
}

TEST_F(ClusterCommands, AServerThatHangs) {
  server.hang();
  for (const std::vector<std::string>& command : kCommands) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--request-timeout", "300ms"});
    SCOPED_TRACE(command.front());
    const Outcome outcome = run(words);
    expectOneLine(outcome);
    EXPECT_NE(outcome.err.find("; --request-timeout 1m waits longer"), std::string::npos)
        << outcome.err;
  }
  expectFinding({"--kubeconfig", server.kubeconfig(), "--request-timeout", "300ms"});
}

TEST(NoCluster, NobodyListens) {
  const std::string kubeconfig = testing::TempDir() + "mbcas-nobody-listens";
  std::ofstream(kubeconfig)
      << "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
         "users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n";
  for (std::vector<std::string> words : kCommands) {
    SCOPED_TRACE(words.front());
    words.insert(words.begin(), MBCAS_BINARY);
    words.insert(words.end(), {"--kubeconfig", kubeconfig});
    const Outcome outcome = runCommand(words);
    expectOneLine(outcome);
    EXPECT_NE(outcome.err.find("kubectl cluster-info"), std::string::npos) << outcome.err;
    words.back() = "/nonexistent";
    expectOneLine(runCommand(words));
  }
  expectFinding({"--kubeconfig", kubeconfig});
  expectFinding({"--kubeconfig", "/nonexistent"});
  std::remove(kubeconfig.c_str());
}

// Every command explains itself, with an example that can be typed.
TEST(Help, OfEveryCommand) {
  const Outcome all = runCommand({MBCAS_BINARY, "help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"demo"},
                                             {"top"},
                                             {"explain"},
                                             {"doctor"},
                                             {"pods"},
                                             {"pods", "list"},
                                             {"pods", "usage"},
                                             {"resize"},
                                             {"restore"},
                                             {"pause"},
                                             {"resume"},
                                             {"run"},
                                             {"inspect"},
                                             {"inspect", "cgroups"},
                                             {"inspect", "machine"},
                                             {"solve"},
                                             {"simulate"},
                                             {"completion"},
                                             {"help"},
                                             {"version"}}) {
    std::vector<std::string> words = {MBCAS_BINARY};
    words.insert(words.end(), command.begin(), command.end());
    words.emplace_back("--help");
    const Outcome outcome = runCommand(words);
    EXPECT_EQ(outcome.exit_code, 0) << command.back();
    EXPECT_NE(outcome.out.find("Example"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("mbcas " + command.front()), std::string::npos) << outcome.out;
    EXPECT_NE(all.out.find("\n  " + command.front()), std::string::npos) << command.front();
    std::vector<std::string> asked = {MBCAS_BINARY, "help"};
    asked.insert(asked.end(), command.begin(), command.end());
    EXPECT_EQ(runCommand(asked).out, outcome.out);
  }
}

TEST(Help, AboutTopics) {
  for (const char* topic :
       {"quickstart", "columns", "modes", "restoring", "annotations", "exit-codes"}) {
    const Outcome outcome = runCommand({MBCAS_BINARY, "help", topic});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_GT(outcome.out.size(), 200u) << topic;
  }
  const Outcome unknown = runCommand({MBCAS_BINARY, "help", "cooking"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.err,
            "mbcas help: cooking: neither a command nor a topic; mbcas help lists both\n");
}

TEST(Plugin, IsCalledByItsName) {
  const std::string folder = MBCAS_BINARY;
  const std::string plugin = folder.substr(0, folder.rfind('/')) + "/kubectl-mbcas";
  const Outcome outcome = runCommand({plugin, "top", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("Usage: kubectl mbcas top [FLAGS]"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\n  kubectl mbcas top -A"), std::string::npos) << outcome.out;
  EXPECT_EQ(runCommand({plugin, "version"}).exit_code, 0);
}

}  // namespace
}  // namespace mbcas::test
