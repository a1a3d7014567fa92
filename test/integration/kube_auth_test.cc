// The ways in which a kubeconfig says who one is and how to get there, against a real
// kube-apiserver: client certificates, exec plugins, a proxy.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/integration/kube_fixture.h"
#include "test/support/fault_proxy.h"

namespace mbcas::test {
namespace {

using namespace kube;

// Keys and certificates in a folder that goes with the object.
class Authority {
 public:
  Authority() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kube-auth-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) return;
    dir_ = pattern;
    good_ = make("ca") && make("stranger") && sign("ca", "ann") && sign("stranger", "eve");
  }
  ~Authority() {
    std::error_code ignored;
    if (!dir_.empty()) std::filesystem::remove_all(dir_, ignored);
  }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  bool good() const { return good_; }
  std::string path(const std::string& name) const { return dir_ + "/" + name; }

 private:
  bool openssl(const std::string& arguments) const {
    const std::string command =
        fmt::format("cd '{}' && openssl {} >openssl.log 2>&1", dir_, arguments);
    return std::system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
  }
  bool make(const std::string& name) const {
    return openssl(
        fmt::format("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                    "-keyout {0}.key -out {0}.crt -subj /CN={0} -days 1",
                    name));
  }
  bool sign(const std::string& authority, const std::string& user) const {
    return openssl(fmt::format("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                               "-keyout {0}.key -out {0}.csr -subj /O=system:masters/CN={0}",
                               user)) &&
           openssl(fmt::format("x509 -req -in {0}.csr -CA {1}.crt -CAkey {1}.key -CAcreateserial "
                               "-out {0}.crt -days 1",
                               user, authority));
  }

  std::string dir_;
  bool good_ = false;
};

class KubeAuthTest : public KubeTest {
 protected:
  static void SetUpTestSuite() {
    authority = std::make_unique<Authority>();
    planeOptions().apiserverArgs = {"--client-ca-file=" + authority->path("ca.crt")};
    KubeTest::SetUpTestSuite();
  }
  static void TearDownTestSuite() {
    KubeTest::TearDownTestSuite();
    authority.reset();
  }
  void SetUp() override {
    ASSERT_TRUE(authority->good()) << "openssl failed";
    KubeTest::SetUp();
  }

  // A kubeconfig for the control plane with this text as the user, YAML's flow style.
  ClientConfig configFor(const std::string& user, const std::string& more_cluster = "") {
    const std::string path = plane->dir() + "/kubeconfig-auth";
    std::ofstream(path) << fmt::format(R"(apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{}", certificate-authority: "{}"{}}}}}]
users: [{{name: u, user: {}}}]
)",
                                       plane->server(), plane->caFile(), more_cluster, user);
    const Result<ClientConfig> loaded = loadKubeconfig({.explicit_path = path});
    EXPECT_TRUE(loaded) << loaded.error().message();
    return loaded.value_or(ClientConfig{});
  }

  // Who the server says we are, or why it does not.
  std::string whoAmI(const ClientConfig& as) {
    Client client(loop, as, clock);
    const auto answer = client.perform(
        {.method = "POST",
         .path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
         .body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"});
    if (!answer) return answer.error().describe();
    std::string body = *answer;
    std::string name;
    const Result<void> parsed = JsonParser().parse(body, [&](JsonCursor root) {
      root.members([&](std::string_view key, JsonCursor status) {
        if (key != "status") return;
        status.members([&](std::string_view, JsonCursor info) {
          info.members([&](std::string_view field, JsonCursor value) {
            if (field == "username") name = value.text();
          });
        });
      });
    });
    EXPECT_TRUE(parsed) << parsed.error().message();
    return name;
  }

  std::string plugin(const std::string& script) {
    const std::string path = plane->dir() + "/plugin";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    ::chmod(path.c_str(), 0700);
    return fmt::format(
        R"({{exec: {{command: "{}", apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}}})",
        path);
  }

  static inline std::unique_ptr<Authority> authority;
};

constexpr const char* kCredentialHead =
    R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)";

std::string readFile(const std::string& path) {
  return readSmallFile(path).value_or("");
}

// PEM inside a JSON string.
std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) {
    text.replace(at, 1, "\\n");
  }
  return text;
}

TEST_F(KubeAuthTest, AClientCertificateIsWhoOneIs) {
  EXPECT_EQ(whoAmI(config), "admin");
  const ClientConfig ann =
      configFor(fmt::format(R"({{client-certificate: "{}", client-key: "{}"}})",
                            authority->path("ann.crt"), authority->path("ann.key")));
  EXPECT_TRUE(ann.token.empty());
  EXPECT_EQ(whoAmI(ann), "ann");
  EXPECT_TRUE(Client(loop, ann, clock).get<Namespace>("", ns));

  ClientConfig inline_ann = ann;
  inline_ann.client_cert = {.data = readFile(authority->path("ann.crt"))};
  inline_ann.client_key = {.data = readFile(authority->path("ann.key"))};
  EXPECT_EQ(whoAmI(inline_ann), "ann");

  // Without one, and with one that the server's authority has not signed.
  EXPECT_TRUE(whoAmI(configFor("{}")).starts_with("40"));
  EXPECT_TRUE(whoAmI(configFor(fmt::format(R"({{client-certificate: "{}", client-key: "{}"}})",
                                           authority->path("eve.crt"), authority->path("eve.key"))))
                  .starts_with("401 Unauthorized"));
}

TEST_F(KubeAuthTest, AnExecPluginGivesATokenAndIsAskedAgainWhenItIsRefused) {
  const std::string log = plane->dir() + "/plugin-log";
  const ClientConfig plugged = configFor(plugin(fmt::format(
      R"sh(echo run >> '{0}'
token=stale
[ "$(wc -l < '{0}')" -gt 1 ] && token={1}
echo '{2}{{"token":"'$token'"}}}}'
)sh",
      log, plane->token(), kCredentialHead)));
  EXPECT_EQ(whoAmI(plugged), "admin");
  EXPECT_EQ(readFile(log), "run\nrun\n");
}

TEST_F(KubeAuthTest, AnExecPluginGivesAClientCertificate) {
  const std::string credential = plane->dir() + "/credential";
  std::ofstream(credential) << kCredentialHead
                            << fmt::format(
                                   R"({{"clientCertificateData":"{}","clientKeyData":"{}"}}}})",
                                   escaped(readFile(authority->path("ann.crt"))),
                                   escaped(readFile(authority->path("ann.key"))));
  EXPECT_EQ(whoAmI(configFor(plugin(fmt::format("cat '{}'\n", credential)))), "ann");
}

TEST_F(KubeAuthTest, GoesThroughAProxy) {
  FaultProxy proxy(port());
  ClientConfig through = configFor(fmt::format(R"({{token: "{}"}})", plane->token()),
                                   fmt::format(R"(, proxy-url: "{}")", proxy.url()));
  EXPECT_EQ(whoAmI(through), "admin");
  EXPECT_EQ("https://" + proxy.lastTunnel(), plane->server());

  // The proxy sees no more than a tunnel: the server is verified through it.
  through.ca = {.path = authority->path("ca.crt")};
  EXPECT_TRUE(whoAmI(through).starts_with(ApiError::kConnect));

  ClientConfig nowhere = through;
  nowhere.proxy_url = "http://127.0.0.1:1";
  EXPECT_TRUE(whoAmI(nowhere).starts_with(ApiError::kConnect));
}

}  // namespace
}  // namespace mbcas::test
