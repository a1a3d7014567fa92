#include "mbcas/kube/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "mbcas/kube/credentials.h"

namespace mbcas::kube {
namespace {

namespace fs = std::filesystem;

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "mbcas-config-XXXXXX").string();
    dir = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(dir); }

  std::string write(const std::string& name, const std::string& text,
                    bool executable = false) const {
    const fs::path path = dir / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    if (executable) fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  static ClientConfig load(const KubeconfigSource& source) {
    Result<ClientConfig> config = loadKubeconfig(source);
    EXPECT_TRUE(config) << (config ? "" : config.error().message());
    return config.value_or(ClientConfig{});
  }
  static std::string errorOf(const KubeconfigSource& source) {
    const Result<ClientConfig> config = loadKubeconfig(source);
    return config ? "" : config.error().message();
  }

  fs::path dir;
};

constexpr const char* kFull = R"(
apiVersion: v1
kind: Config
current-context: main
contexts:
- name: main
  context: {cluster: c1, user: u1, namespace: shop}
- name: other
  context: {cluster: c2, user: u2}
- name: nobody
  context: {cluster: c2}
- name: plugin
  context: {cluster: c2, user: exec}
- name: basic
  context: {cluster: c2, user: basic}
clusters:
- name: c1
  cluster:
    server: https://one.example:6443/prefix/
    certificate-authority: pki/ca.crt
    tls-server-name: api.internal
    proxy-url: http://proxy:3128
    disable-compression: true
- name: c2
  cluster: {server: "https://two.example", certificate-authority-data: UEVNCg==, certificate-authority: ignored}
users:
- name: u1
  user:
    client-certificate: me.crt
    client-key: /abs/me.key
    as: boss
    as-uid: "7"
    as-groups: [g1, g2]
    as-user-extra: {scopes: [a, b]}
- name: u2
  user: {token: secret-token, tokenFile: tok}
- name: basic
  user: {username: me, password: pw}
- name: exec
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/plugin
      args: [--one, two]
      env: [{name: A, value: b}]
      provideClusterInfo: true
      interactiveMode: Never
)";

TEST_F(ConfigTest, ReadsEveryField) {
  const std::string path = write("k/config", kFull);
  const ClientConfig main = load({.explicit_path = path});
  EXPECT_EQ(main.server, "https://one.example:6443/prefix");
  EXPECT_EQ(main.name_space, "shop");
  EXPECT_EQ(main.ca.path, (dir / "k/pki/ca.crt").string());
  EXPECT_EQ(main.tls_server_name, "api.internal");
  EXPECT_EQ(main.proxy_url, "http://proxy:3128");
  EXPECT_FALSE(main.compress);
  EXPECT_EQ(main.client_cert.path, (dir / "k/me.crt").string());
  EXPECT_EQ(main.client_key.path, "/abs/me.key");
  EXPECT_EQ(main.impersonate.user, "boss");
  EXPECT_EQ(main.impersonate.uid, "7");
  EXPECT_EQ(main.impersonate.groups, (std::vector<std::string>{"g1", "g2"}));
  EXPECT_EQ(main.impersonate.extra.at("scopes"), (std::vector<std::string>{"a", "b"}));

  const ClientConfig other = load({.explicit_path = path, .context = "other"});
  EXPECT_EQ(other.ca.data, "PEM\n");  // data beats the path
  EXPECT_EQ(other.ca.path, "");
  EXPECT_EQ(other.name_space, "default");
  EXPECT_TRUE(other.compress);
  EXPECT_EQ(other.token_file, (dir / "k/tok").string());

  EXPECT_EQ(load({.explicit_path = path, .context = "nobody"}).token, "");
  const ClientConfig plugin = load({.explicit_path = path, .context = "plugin"});
  ASSERT_TRUE(plugin.exec);
  EXPECT_EQ(plugin.exec->command, (dir / "k/bin/plugin").string());
  EXPECT_EQ(plugin.exec->args, (std::vector<std::string>{"--one", "two"}));
  EXPECT_TRUE(plugin.exec->provide_cluster_info);
}

TEST_F(ConfigTest, AClusterOrAUserInsteadOfThatOfTheContext) {
  const std::string path = write("config", kFull);
  const ClientConfig cluster = load({.explicit_path = path, .cluster = "c2"});
  EXPECT_EQ(cluster.server, "https://two.example");
  EXPECT_EQ(cluster.name_space, "shop") << "the rest is of the context";
  EXPECT_EQ(cluster.impersonate.user, "boss");
  const ClientConfig user = load({.explicit_path = path, .user = "basic"});
  EXPECT_EQ(user.server, "https://one.example:6443/prefix");
  EXPECT_EQ(user.username, "me");
  EXPECT_EQ(user.impersonate.user, "");
  EXPECT_NE(errorOf({.explicit_path = path, .cluster = "c9"}).find(": no cluster named \"c9\""),
            std::string::npos);
  EXPECT_NE(errorOf({.explicit_path = path, .user = "u9"}).find(": no user named \"u9\""),
            std::string::npos);
  // Without any context a cluster is enough.
  const std::string bare =
      write("bare", "clusters: [{name: c, cluster: {server: 'https://three.example'}}]\n");
  EXPECT_EQ(load({.explicit_path = bare, .cluster = "c"}).server, "https://three.example");
  EXPECT_NE(errorOf({.explicit_path = bare}), "");
}

TEST_F(ConfigTest, TheFirstFileThatDefinesANameWins) {
  const std::string first = write("a", R"(
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://first"}}]
)");
  const std::string second = write("b", R"(
current-context: y
clusters: [{name: c, cluster: {server: "https://second", proxy-url: "http://p"}}]
users: [{name: u, user: {token: t}}]
)");
  const ClientConfig config =
      load({.environment = first + ":" + (dir / "missing").string() + "::" + second});
  EXPECT_EQ(config.server, "https://first");
  EXPECT_EQ(config.proxy_url, "");  // whole entries, not fields
  EXPECT_EQ(config.token, "t");
}

TEST_F(ConfigTest, LooksInTheHomeFolderLast) {
  write("home/.kube/config", kFull);
  EXPECT_EQ(load({.home = (dir / "home").string()}).name_space, "shop");
  EXPECT_NE(errorOf({.environment = (dir / "nope").string(), .home = (dir / "home").string()}), "");
}

TEST_F(ConfigTest, SaysWhatIsWrong) {
  EXPECT_NE(errorOf({}), "");
  EXPECT_NE(errorOf({.explicit_path = (dir / "nope").string()}).find("nope"), std::string::npos);
  const auto bad = [&](const std::string& text) {
    return errorOf({.explicit_path = write("bad", text)});
  };
  EXPECT_NE(bad("a: [").find("line"), std::string::npos);
  EXPECT_NE(bad("{}").find("current-context"), std::string::npos);
  EXPECT_NE(bad("current-context: x").find("no context named \"x\""), std::string::npos);
  const std::string head =
      "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";
  EXPECT_NE(bad(head).find("no cluster named \"c\""), std::string::npos);
  EXPECT_NE(bad(head + "clusters: [{name: c, cluster: {server: 's'}}]").find("no user named \"u\""),
            std::string::npos);
  EXPECT_NE(bad(head + "clusters: [{name: c, cluster: {}}]").find("no server"), std::string::npos);
  const std::string cluster = head + "clusters: [{name: c, cluster: {server: 's'}}]\n";
  EXPECT_NE(bad(cluster + "users: [{name: u, user: {client-certificate: a}}]").find("key"),
            std::string::npos);
  EXPECT_NE(bad(cluster + "users: [{name: u, user: {client-key-data: '!', client-certificate: a}}]")
                .find("client-key-data: not base64"),
            std::string::npos);
  EXPECT_NE(bad(cluster + "users: [{name: u, user: {exec: {command: x}}}]").find("apiVersion"),
            std::string::npos);
  EXPECT_NE(
      bad(head + "clusters: [{name: c, cluster: {server: s, insecure-skip-tls-verify: maybe}}]")
          .find("wrong type"),
      std::string::npos);
}

TEST_F(ConfigTest, FindsItselfInsideACluster) {
  write("sa/token", "abc\n");
  write("sa/namespace", "mine");
  const std::string sa = (dir / "sa").string();
  const Result<ClientConfig> config = inClusterConfig({"10.0.0.1", "443", sa});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->name_space, "mine");
  EXPECT_EQ(config->token_file, sa + "/token");
  EXPECT_EQ(config->ca.path, sa + "/ca.crt");
  EXPECT_EQ(inClusterConfig({"fd00::1", "443", sa})->server, "https://[fd00::1]:443");
  EXPECT_FALSE(inClusterConfig({"", "", sa}));
  EXPECT_FALSE(inClusterConfig({"10.0.0.1", "443", (dir / "nope").string()}));
}

// --- credentials ---

TEST_F(ConfigTest, ATokenFileIsReadAgainEveryMinuteAndWhenRefused) {
  ClientConfig config;
  config.token_file = write("token", "one\n");
  config.token = "loses";
  SimulatedClock clock;
  const auto source = makeCredentialSource(config, clock);
  EXPECT_EQ(source->get()->authorization, "Bearer one");
  write("token", "two");
  clock.advance(std::chrono::seconds(49));
  EXPECT_EQ(source->get()->authorization, "Bearer one");
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(source->get()->authorization, "Bearer two");
  write("token", "three");
  EXPECT_TRUE(source->refused());
  EXPECT_EQ(source->get()->authorization, "Bearer three");
  fs::remove(config.token_file);
  clock.advance(std::chrono::minutes(5));
  EXPECT_EQ(source->get()->authorization, "Bearer three");  // the old one is better than none
}

TEST_F(ConfigTest, PlainCredentials) {
  const SystemClock clock;
  ClientConfig config;
  EXPECT_EQ(makeCredentialSource(config, clock)->get()->authorization, "");
  config.username = "me";
  config.password = "pw";
  EXPECT_EQ(makeCredentialSource(config, clock)->get()->authorization, "Basic bWU6cHc=");
  config.token = "t";
  EXPECT_EQ(makeCredentialSource(config, clock)->get()->authorization, "Bearer t");
}

TEST_F(ConfigTest, AnExecPluginRunsOnceUntilItsCredentialExpiresOrIsRefused) {
  const std::string count = (dir / "count").string();
  const std::string plugin = write("plugin", R"(#!/bin/sh
echo "$2 $KUBERNETES_EXEC_INFO" >> "$COUNT"
n=$(wc -l < "$COUNT")
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t'$n'","expirationTimestamp":"1970-01-01T01:00:00Z"}}'
)",
                                   true);
  ClientConfig config;
  config.server = "https://example";
  config.exec = ExecPlugin{.command = plugin,
                           .args = {"--x", "y"},
                           .env = {{"COUNT", count}},
                           .api_version = "client.authentication.k8s.io/v1",
                           .provide_cluster_info = true};
  SimulatedClock clock;
  const auto source = makeCredentialSource(config, clock);
  EXPECT_FALSE(source->ready());
  EXPECT_EQ(source->get()->authorization, "Bearer t1");
  EXPECT_TRUE(source->ready());
  EXPECT_EQ(source->get()->authorization, "Bearer t1");
  EXPECT_TRUE(source->refused());
  EXPECT_EQ(source->get()->authorization, "Bearer t2");
  clock.advance(std::chrono::hours(1));
  EXPECT_FALSE(source->ready());
  EXPECT_EQ(source->get()->authorization, "Bearer t3");
  std::ifstream log(count);
  std::string line;
  std::getline(log, line);
  EXPECT_EQ(line.substr(0, 3), "y {");
  EXPECT_NE(line.find(R"("server":"https://example")"), std::string::npos);
}

TEST_F(ConfigTest, AnExecPluginThatFailsIsReportedWithoutItsSecrets) {
  const SystemClock clock;
  const auto errorFrom = [&](const std::string& script) {
    ClientConfig config;
    config.exec = ExecPlugin{.command = write("plugin", "#!/bin/sh\n" + script, true),
                             .api_version = "client.authentication.k8s.io/v1"};
    const Result<Credential> credential = makeCredentialSource(config, clock)->get();
    return credential ? "" : credential.error().message();
  };
  EXPECT_NE(errorFrom("exit 3").find("exited with 3"), std::string::npos);
  EXPECT_NE(errorFrom("kill -9 $$").find("signal 9"), std::string::npos);
  EXPECT_NE(errorFrom("echo '{}'").find("apiVersion"), std::string::npos);
  const std::string head = R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","status":)";
  EXPECT_NE(errorFrom(head + "{}}'").find("neither"), std::string::npos);
  EXPECT_NE(errorFrom(head + R"({"clientKeyData":"k"}}')").find("only one"), std::string::npos);
  const std::string leak = errorFrom(head + R"({"token":"hush","expirationTimestamp":"hush"}}')");
  EXPECT_NE(leak, "");
  EXPECT_EQ(leak.find("hush"), std::string::npos);
  ClientConfig missing;
  missing.exec = ExecPlugin{.command = "mbcas-no-such-plugin",
                            .api_version = "client.authentication.k8s.io/v1",
                            .install_hint = "install it"};
  EXPECT_NE(makeCredentialSource(missing, clock)->get().error().message().find("install it"),
            std::string::npos);
}

}  // namespace
}  // namespace mbcas::kube
