// The watch cache and leader election against a real kube-apiserver that is restarted, compacted
// and cut off, and whose tokens expire.
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "mbcas/kube/example/stamper.h"
#include "mbcas/kube/informer.h"
#include "mbcas/kube/leader.h"
#include "mbcas/kube/metrics.h"
#include "test/integration/kube_fixture.h"
#include "test/support/fault_proxy.h"

namespace mbcas::test {
namespace {

using namespace kube;
using std::chrono::milliseconds;
using std::chrono::seconds;

WatchOptions quick(const std::string& ns) {
  WatchOptions options{.name_space = ns};
  options.tuning.first_delay = milliseconds(20);
  options.tuning.max_delay = milliseconds(200);
  return options;
}

// What handlers were told: "+UID" of an object that came, "UID" of one that changed, "-UID" of one
// that went.
class Told {
 public:
  void follow(Informer<ConfigMap>& maps) {
    maps.onChange([this](const TypedChange<ConfigMap>& change) {
      const std::scoped_lock lock(mutex_);
      told_.push_back((change.before ? "" : "+") + std::string(change.after ? "" : "-") +
                      change.latest().meta.uid.string());
    });
  }
  std::vector<std::string> all() const {
    const std::scoped_lock lock(mutex_);
    return told_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

// The same kind, but asked for as JSON.
const Kind& jsonOnly() {
  static const Kind kKind = [] {
    Kind kind = ConfigMap::kind();
    kind.protobuf = nullptr;
    return kind;
  }();
  return kKind;
}

class KubeWatchTest : public KubeTest {
 protected:
  void create(const std::string& name, const std::string& value) {
    const auto made = admin->create<ConfigMap>(ns, configMapBody(name, value));
    ASSERT_TRUE(made) << made.error().describe();
  }
  void set(const std::string& name, const std::string& value) {
    const auto done = admin->patch<ConfigMap>(ns, name, PatchType::kMerge,
                                              fmt::format(R"({{"data":{{"v":"{}"}}}})", value));
    ASSERT_TRUE(done) << done.error().describe();
  }
  static std::string valueIn(const Informer<ConfigMap>& maps, const std::string& ns,
                             const std::string& name) {
    const auto map = maps.find(ns, name);
    return map ? std::string(find(map->data, "v").value_or("")) : "-";
  }
};

TEST_F(KubeWatchTest, FollowsTheServer) {
  create("a", "1");
  create("b", "1");
  for (const int variant : {0, 1, 2, 3}) {
    WatchOptions options = quick(ns);
    options.tuning.streaming_list = variant % 2 == 0;
    options.page = 1;
    options.annotations = {"none/"};  // the mark of a streaming list is no matter of taste
    options.streaming_list_idle = seconds(60);
    Informer<ConfigMap> maps(*admin, options, variant < 2 ? ConfigMap::kind() : jsonOnly());
    maps.addIndex("value", [](const ConfigMap& map) {
      return std::vector<std::string>{std::string(find(map.data, "v").value_or(""))};
    });
    std::mutex mutex;
    std::string told;
    maps.onChange([&](const TypedChange<ConfigMap>& change) {
      const std::scoped_lock lock(mutex);
      told += (change.before ? "" : "+") + std::string(change.after ? "" : "-") +
              change.latest().meta.name.string() + " ";
    });
    maps.start();
    ASSERT_TRUE(maps.waitForSync(seconds(60)));
    EXPECT_EQ(maps.size(), 2u);
    EXPECT_EQ(maps.byIndex("value", "1").size(), 2u);
    create("c", "1");
    set("c", "2");
    ASSERT_TRUE(admin->remove<ConfigMap>(ns, "c"));
    EXPECT_TRUE(eventually([&] {
      const std::scoped_lock lock(mutex);
      return told.ends_with("+c c -c ");
    })) << told;
    EXPECT_EQ(maps.size(), 2u);
  }
}

TEST_F(KubeWatchTest, ASelectorThatIsLeftLooksLikeADeletion) {
  ASSERT_TRUE(admin->create<ConfigMap>(ns, R"({"metadata":{"name":"a","labels":{"in":"yes"}}})"));
  WatchOptions options = quick(ns);
  options.label_selector = "in=yes";
  Informer<ConfigMap> maps(*admin, options);
  maps.start();
  ASSERT_TRUE(maps.waitForSync(seconds(60)));
  EXPECT_EQ(maps.size(), 1u);
  ASSERT_TRUE(admin->patch<ConfigMap>(ns, "a", PatchType::kMerge,
                                      R"({"metadata":{"labels":{"in":"no"}}})"));
  EXPECT_TRUE(eventually([&] { return maps.size() == 0; }));
}

TEST_F(KubeWatchTest, ASecondClientRecreatesUnderTheSameName) {
  create("a", "old");
  Told told;
  Informer<ConfigMap> maps(*admin, quick(ns));
  told.follow(maps);
  maps.start();
  ASSERT_TRUE(maps.waitForSync(seconds(60)));
  Client second(loop, config, clock);
  const std::string before = maps.find(ns, "a")->meta.uid.string();
  ASSERT_TRUE(second.remove<ConfigMap>(ns, "a"));
  const auto created = second.create<ConfigMap>(ns, configMapBody("a", "new"));
  ASSERT_TRUE(created);
  const std::string after = (*created)->meta.uid.string();
  ASSERT_TRUE(eventually([&] { return valueIn(maps, ns, "a") == "new"; }));
  EXPECT_TRUE(eventually([&] { return told.all().size() >= 3; }));
  EXPECT_EQ(told.all(), (std::vector<std::string>{"+" + before, "-" + before, "+" + after}));
}

TEST_F(KubeWatchTest, ARecreationWhileCutOffIsSeenAsTwoObjects) {
  create("a", "old");
  FaultProxy proxy(port());
  config.server = proxy.url();
  Client through(loop, config, clock);
  Told told;
  Informer<ConfigMap> maps(through, quick(ns));
  told.follow(maps);
  maps.start();
  ASSERT_TRUE(maps.waitForSync(seconds(60)));
  const std::string before = maps.find(ns, "a")->meta.uid.string();
  proxy.plan([](int) { return Fault{.kind = Fault::Kind::kRefuse}; });
  proxy.cutAll();
  ASSERT_TRUE(admin->remove<ConfigMap>(ns, "a"));
  create("a", "new");
  proxy.plan(nullptr);
  ASSERT_TRUE(eventually([&] { return valueIn(maps, ns, "a") == "new"; }));
  const std::string after = maps.find(ns, "a")->meta.uid.string();
  EXPECT_TRUE(eventually([&] { return told.all().size() >= 3; }));
  EXPECT_EQ(told.all(), (std::vector<std::string>{"+" + before, "-" + before, "+" + after}));
}

TEST_F(KubeWatchTest, SurvivesARestartOfTheApiserver) {
  create("a", "1");
  Metrics metrics;
  Client counted(loop, config, clock, {.metrics = &metrics});
  Informer<ConfigMap> maps(counted, quick(ns));
  maps.start();
  ASSERT_TRUE(maps.waitForSync(seconds(60)));
  ASSERT_TRUE(plane->killApiserver());
  EXPECT_EQ(valueIn(maps, ns, "a"), "1");  // what is known stays
  ASSERT_TRUE(plane->startApiserver());
  ASSERT_TRUE(eventually([&] {
    return admin->patch<ConfigMap>(ns, "a", PatchType::kMerge, R"({"data":{"v":"2"}})").has_value();
  }));
  EXPECT_TRUE(eventually([&] { return valueIn(maps, ns, "a") == "2"; }));
  EXPECT_NE(metrics.text().find("kube_watch_restarts_total{cause=\"resume\",kind=\"ConfigMap\"}"),
            std::string::npos);
}

TEST_F(KubeWatchTest, ListsAnewWhenHistoryIsCompacted) {
  create("a", "1");
  create("gone", "1");
  FaultProxy proxy(port());
  config.server = proxy.url();
  Client through(loop, config, clock);
  std::atomic<int> expired = 0;
  WatchOptions options = quick(ns);
  options.on_error = [&](const ApiError& error) { expired += error.expired() ? 1 : 0; };
  Informer<ConfigMap> maps(through, options);
  std::atomic<bool> told_late = false;
  maps.onChange([&](const TypedChange<ConfigMap>& change) {
    if (!change.after && change.noticed_late) told_late = true;
  });
  maps.start();
  ASSERT_TRUE(maps.waitForSync(seconds(60)));

  proxy.plan([](int) { return Fault{.kind = Fault::Kind::kRefuse}; });
  proxy.cutAll();
  set("a", "2");
  ASSERT_TRUE(admin->remove<ConfigMap>(ns, "gone"));
  ASSERT_TRUE(plane->compact());
  // The server's own cache still knows the history: only a restart makes it forget.
  ASSERT_TRUE(plane->killApiserver());
  ASSERT_TRUE(plane->startApiserver());
  proxy.plan(nullptr);

  EXPECT_TRUE(eventually([&] { return valueIn(maps, ns, "a") == "2" && !maps.find(ns, "gone"); }));
  EXPECT_GE(expired, 1);
  EXPECT_TRUE(eventually([&] { return told_late.load(); }));  // the store is first
}

TEST_F(KubeWatchTest, GivesUpOnAServerThatHangs) {
  create("a", "1");
  WatchOptions options = quick(ns);
  options.idle_timeout = seconds(2);
  std::atomic<int> timeouts = 0;
  options.on_error = [&](const ApiError& error) { timeouts += error.reason == ApiError::kTimeout; };
  Informer<ConfigMap> maps(*admin, options);
  maps.start();
  ASSERT_TRUE(maps.waitForSync(seconds(60)));
  ASSERT_TRUE(plane->pauseApiserver());
  EXPECT_TRUE(eventually([&] { return timeouts >= 1; }));
  ASSERT_TRUE(plane->resumeApiserver());
  ASSERT_TRUE(eventually([&] {
    return admin->patch<ConfigMap>(ns, "a", PatchType::kMerge, R"({"data":{"v":"2"}})").has_value();
  }));
  EXPECT_TRUE(eventually([&] { return valueIn(maps, ns, "a") == "2"; }));
}

TEST_F(KubeWatchTest, TheExampleOfTheDocumentationWorks) {
  std::atomic<bool> stop = false;
  std::thread stamper([&] { example::runStamper(*admin, stop); });
  ASSERT_TRUE(admin->create<ConfigMap>(
      ns, R"({"metadata":{"name":"a","labels":{"stamp":"yes"}},"data":{"x":"1","y":"2"}})"));
  create("b", "1");
  const auto stamp = [&](const std::string& name) {
    const auto map = admin->get<ConfigMap>(ns, name);
    return map ? std::string(find((*map)->meta.annotations, "example.com/keys").value_or("")) : "";
  };
  EXPECT_TRUE(eventually([&] { return stamp("a") == "2"; }));
  ASSERT_TRUE(admin->patch<ConfigMap>(ns, "a", PatchType::kMerge, R"({"data":{"z":"3"}})"));
  EXPECT_TRUE(eventually([&] { return stamp("a") == "3"; }));
  EXPECT_EQ(stamp("b"), "");
  stop = true;
  stamper.join();
}

// --- tokens ---

std::string base64Url(std::string_view bytes) {
  std::string out(bytes.size() * 4 / 3 + 8, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  while (out.ends_with('=')) out.pop_back();
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return out;
}

// A service account's token, signed with the control plane's own key.
std::string signToken(const ControlPlane& plane, const std::string& ns, const std::string& name,
                      std::string_view uid, std::int64_t now, std::int64_t expires) {
  const std::string claims = fmt::format(
      R"({{"iss":"https://kubernetes.default.svc","aud":["https://kubernetes.default.svc"],
      "sub":"system:serviceaccount:{0}:{1}","exp":{2},"iat":{3},"nbf":{3},
      "kubernetes.io":{{"namespace":"{0}","serviceaccount":{{"name":"{1}","uid":"{4}"}}}}}})",
      ns, name, expires, now - 600, uid);
  const std::string text = base64Url(R"({"alg":"ES256"})") + "." + base64Url(claims);
  std::unique_ptr<BIO, decltype(&BIO_free_all)> file(
      BIO_new_file((plane.dir() + "/service-account.key").c_str(), "r"), &BIO_free_all);
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      file ? PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr) : nullptr,
      &EVP_PKEY_free);
  if (!key) return "";
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free);
  EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get());
  std::size_t size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                 text.size());
  // JWS wants the two numbers of the signature side by side, not in DER.
  const auto* der = reinterpret_cast<const unsigned char*>(signature.data());
  std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> numbers(
      d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(size)), &ECDSA_SIG_free);
  if (!numbers) return "";
  std::string raw(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(numbers.get()), out, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(numbers.get()), out + 32, 32);
  return text + "." + base64Url(raw);
}

TEST_F(KubeWatchTest, GoesOnWithTheRotatedTokenWhenTheOldOneExpires) {
  struct ServiceAccount : Object {
    using Object::Object;
    static const Kind& kind() {
      static const Kind kKind = makeKind<ServiceAccount>(
          {.group = "", .version = "v1", .plural = "serviceaccounts", .name = "ServiceAccount"},
          [](ServiceAccount&, std::string_view, JsonCursor) {});
      return kKind;
    }
  };
  const auto account = admin->create<ServiceAccount>(ns, R"({"metadata":{"name":"robot"}})");
  ASSERT_TRUE(account) << account.error().describe();
  ASSERT_TRUE(admin->perform(
      {.method = "POST",
       .path = fmt::format("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings", ns),
       .body = fmt::format(R"({{"metadata":{{"name":"robot"}},"roleRef":{{"kind":"ClusterRole",
         "name":"cluster-admin","apiGroup":"rbac.authorization.k8s.io"}},"subjects":[{{"kind":"ServiceAccount",
         "name":"robot","namespace":"{}"}}]}})",
                           ns)}));
  create("a", "1");

  const auto sign = [&](seconds lifetime) {
    const auto now = std::chrono::duration_cast<seconds>(clock.wall().time_since_epoch()).count();
    return signToken(*plane, ns, "robot", (*account)->meta.uid, now, now + lifetime.count());
  };
  const std::string path = plane->dir() + "/robot-token";
  // The server learns a moment later what the robot may do; the old token's time is not for that.
  config.token = sign(std::chrono::hours(1));
  Client early(loop, config, clock);
  ASSERT_TRUE(eventually([&] { return early.get<ConfigMap>(ns, "a").has_value(); }));
  // The server is lenient by a minute: this one has half of one to live.
  const std::string old_token = sign(seconds(-30));
  std::ofstream(path) << old_token << "\n";
  config.token.clear();
  config.token_file = path;
  Client robot(loop, config, clock);
  WatchOptions options = quick(ns);
  options.watch_time = seconds(1);  // so that it comes back with its token again and again
  std::atomic<int> refused = 0;
  std::mutex mutex;
  std::string last_error;
  options.on_error = [&](const ApiError& error) {
    const std::scoped_lock lock(mutex);
    refused += error.code == 401 ? 1 : 0;
    last_error = error.describe();
  };
  Informer<ConfigMap> maps(robot, options);
  maps.start();
  ASSERT_TRUE(maps.waitForSync(seconds(60))) << last_error;
  EXPECT_EQ(refused, 0);

  std::ofstream(path) << sign(std::chrono::hours(1));
  ClientConfig stale = config;
  stale.token_file.clear();
  stale.token = old_token;
  Client late(loop, stale, clock);
  ASSERT_TRUE(eventually(
      [&] {
        const auto result = late.get<ConfigMap>(ns, "a");
        return !result && result.error().code == 401;
      },
      seconds(150)));
  set("a", "2");
  EXPECT_TRUE(eventually([&] { return valueIn(maps, ns, "a") == "2"; }));
  EXPECT_TRUE(robot.get<ConfigMap>(ns, "a"));
  EXPECT_EQ(refused, 0);  // the client fetched the new token before anybody noticed
}

// --- leases ---

class Candidate {
 public:
  Candidate(const std::string& kubeconfig, const std::string& ns, const std::string& identity) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::vector<std::string> words = {KUBE_LEASE_CANDIDATE, kubeconfig, ns, identity};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    reader_ = std::thread([this, fd = ends[0]] {
      char c = 0;
      while (::read(fd, &c, 1) == 1) {
        if (c == 'L') led_ = true;
        if (c == 'w') ++work_;
      }
      ::close(fd);
    });
  }
  ~Candidate() { end(SIGKILL); }
  bool led() const { return led_; }  // now or before
  int work() const { return work_; }
  void signal(int number) const { ::kill(pid_, number); }
  // What waitpid says of its end.
  int end(int number) {
    int status = 0;
    if (pid_ > 0) {
      if (number != 0) signal(number);
      ::waitpid(pid_, &status, 0);
      pid_ = -1;
      reader_.join();
    }
    return status;
  }

 private:
  pid_t pid_ = -1;
  std::atomic<bool> led_ = false;
  std::atomic<int> work_ = 0;
  std::thread reader_;
};

TEST_F(KubeWatchTest, TheSecondCandidateTakesOverFromAKilledOne) {
  Candidate first(plane->kubeconfig(), ns, "first");
  ASSERT_TRUE(eventually([&] { return first.led(); }));
  Candidate second(plane->kubeconfig(), ns, "second");
  const auto lease = [&] { return *admin->get<Lease>(ns, "candidate"); };
  const WallTime seen = lease()->renewed;
  ASSERT_TRUE(eventually([&] { return lease()->renewed > seen + seconds(6); }));  // a lease long
  EXPECT_FALSE(second.led());
  first.end(SIGKILL);
  ASSERT_TRUE(eventually([&] { return second.led(); }));
  EXPECT_EQ(lease()->holder, "second");
  EXPECT_EQ(lease()->transitions, 1);

  // One that ends in order gives the lease back.
  second.end(SIGTERM);
  EXPECT_EQ(lease()->holder, "");
  Candidate third(plane->kubeconfig(), ns, "third");
  ASSERT_TRUE(eventually([&] { return third.led(); }));
  EXPECT_EQ(lease()->transitions, 2);
}

TEST_F(KubeWatchTest, ALeaderThatWasStoppedFindsItselfReplaced) {
  Candidate first(plane->kubeconfig(), ns, "first");
  Candidate second(plane->kubeconfig(), ns, "second");
  ASSERT_TRUE(eventually([&] { return first.work() > 0 || second.work() > 0; }));
  Candidate& stopped = first.led() ? first : second;
  Candidate& other = first.led() ? second : first;
  EXPECT_FALSE(other.led());
  stopped.signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return other.work() > 0; }));  // the lease has run out
  const int before = stopped.work();
  stopped.signal(SIGCONT);
  const int status = stopped.end(0);  // by itself
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
  // One piece may have been under way when it was stopped; it began none after that.
  EXPECT_LE(stopped.work(), before + 1);
  const int then = other.work();
  EXPECT_TRUE(eventually([&] { return other.work() > then; }));
  EXPECT_EQ((*admin->get<Lease>(ns, "candidate"))->transitions, 1);
}

TEST_F(KubeWatchTest, ALeaderThatIsCutOffStepsDown) {
  FaultProxy proxy(port());
  config.server = proxy.url();
  Client through(loop, config, clock);
  Metrics metrics;
  std::atomic<bool> started = false;
  std::atomic<bool> lost = false;
  LeaderElector elector(through,
                        {.name_space = ns,
                         .name = "l",
                         .identity = "me",
                         .lease = seconds(6),
                         .renew_deadline = seconds(5),
                         .retry = milliseconds(300),
                         .metrics = &metrics},
                        {.on_started = [&] { started = true; }, .on_lost = [&] { lost = true; }});
  ASSERT_TRUE(elector.start());
  ASSERT_TRUE(eventually([&] { return started.load(); }));
  EXPECT_TRUE(elector.leads());
  EXPECT_NE(metrics.text().find("leader_election_master_status{name=\"l\"} 1"), std::string::npos);
  proxy.plan([](int) { return Fault{.kind = Fault::Kind::kHalfOpen}; });
  proxy.cutAll();
  EXPECT_TRUE(eventually([&] { return lost.load(); }));
  EXPECT_FALSE(elector.leads());
}

}  // namespace
}  // namespace mbcas::test
