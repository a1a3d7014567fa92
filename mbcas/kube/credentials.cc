#include "mbcas/kube/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/kube/base64.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::kube {
namespace {

// As execve wants them: pointers into the texts, and a null at the end.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

using std::chrono::milliseconds;
using std::chrono::seconds;

// client-go's rhythm: a token is good for a minute, and renewed ten seconds before that is over.
constexpr Nanos kTokenPeriod = seconds(60) - seconds(10);
constexpr Nanos kPluginTimeout = seconds(60);
constexpr std::size_t kMaxPluginOutput = 1 << 20;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").contains(text.back())) text.remove_suffix(1);
  while (!text.empty() && std::string_view(" \t\r\n").contains(text.front())) text.remove_prefix(1);
  return text;
}

class FixedCredential final : public CredentialSource {
 public:
  explicit FixedCredential(std::string authorization)
      : credential_{std::move(authorization), {}, {}} {}
  Result<Credential> get() override { return credential_; }

 private:
  Credential credential_;
};

class TokenFile final : public CredentialSource {
 public:
  TokenFile(std::string path, const Clock& clock) : path_(std::move(path)), clock_(clock) {}

  Result<Credential> get() override {
    const MonotonicTime now = clock_.monotonic();
    if (last_ && !refused_ && now - read_at_ < kTokenPeriod) return *last_;
    Result<std::string> text = readSmallFile(path_);
    if (text && !trimmed(*text).empty()) {
      last_ = Credential{fmt::format("Bearer {}", trimmed(*text)), {}, {}};
      read_at_ = now;
      refused_ = false;
    } else if (!last_) {
      return failure(text ? Error(path_ + " is empty") : std::move(text).error());
    }
    return *last_;  // the old one, if the file cannot be read just now
  }

  bool refused() override {
    refused_ = true;
    return true;
  }

 private:
  std::string path_;
  const Clock& clock_;
  std::optional<Credential> last_;
  MonotonicTime read_at_{};
  bool refused_ = false;
};

class Pipe {
 public:
  ~Pipe() {
    closeRead();
    closeWrite();
  }
  bool open() { return ::pipe2(fds_, O_CLOEXEC) == 0; }
  int readEnd() const { return fds_[0]; }
  int writeEnd() const { return fds_[1]; }
  void closeRead() { closeOne(fds_[0]); }
  void closeWrite() { closeOne(fds_[1]); }

 private:
  static void closeOne(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  int fds_[2] = {-1, -1};
};

// Everything the file descriptor gives until its end; bounded in size and time.
Result<std::string> readAll(int fd, const Clock& clock) {
  std::string out;
  char buffer[4096];
  const MonotonicTime deadline = clock.monotonic() + kPluginTimeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - clock.monotonic());
    if (left.count() <= 0) return failure("timed out");
    pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return failure("timed out");
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count == 0) return out;
    if (count < 0 && errno != EINTR) return failure("cannot read its output");
    if (count > 0) out.append(buffer, static_cast<std::size_t>(count));
    if (out.size() > kMaxPluginOutput) return failure("printed more than 1 MiB");
  }
}

// Runs the plugin and returns what it printed on standard output. Its standard error goes where
// ours goes, its standard input is empty: nobody is there to answer questions.
Result<std::string> runPlugin(const ExecPlugin& plugin, const std::string& exec_info,
                              const Clock& clock) {
  Pipe out;
  if (!out.open()) return failure("cannot make a pipe");
  std::vector<std::string> env_text;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("KUBERNETES_EXEC_INFO="))
      env_text.emplace_back(*entry);
  }
  for (const auto& [name, value] : plugin.env)
    env_text.push_back(fmt::format("{}={}", name, value));
  env_text.push_back("KUBERNETES_EXEC_INFO=" + exec_info);
  std::vector<char*> env = pointers(env_text);
  std::vector<std::string> arg_text = {plugin.command};
  arg_text.insert(arg_text.end(), plugin.args.begin(), plugin.args.end());
  std::vector<char*> argv = pointers(arg_text);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.writeEnd(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, plugin.command.c_str(), &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return failure(fmt::format("cannot be started (errno {}){}{}", error,
                               plugin.install_hint.empty() ? "" : ": ", plugin.install_hint));
  }
  out.closeWrite();
  Result<std::string> text = readAll(out.readEnd(), clock);
  if (!text) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (text && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
    return failure(WIFEXITED(status) ? fmt::format("exited with {}", WEXITSTATUS(status))
                                     : fmt::format("was ended by signal {}", WTERMSIG(status)));
  }
  return text;
}

class ExecCredential final : public CredentialSource {
 public:
  ExecCredential(const ClientConfig& config, const Clock& clock)
      : plugin_(*config.exec), clock_(clock), exec_info_(execInfo(config)) {}

  bool ready() const override { return last_ && !(expires_ && clock_.wall() >= *expires_); }

  Result<Credential> get() override {
    if (ready()) return *last_;
    Result<Credential> fresh = run();
    if (!fresh) {
      return failure(std::move(fresh).error().within("credential plugin " + plugin_.command));
    }
    last_ = *std::move(fresh);
    return *last_;
  }

  bool refused() override {
    last_.reset();
    return true;
  }

 private:
  static std::string execInfo(const ClientConfig& config) {
    std::string out;
    JsonWriter json(out);
    json.beginObject();
    json.key("apiVersion").value(config.exec->api_version);
    json.key("kind").value("ExecCredential");
    json.key("spec").beginObject();
    json.key("interactive").value(false);
    if (config.exec->provide_cluster_info) {
      json.key("cluster").beginObject();
      json.key("server").value(config.server);
      if (!config.tls_server_name.empty())
        json.key("tls-server-name").value(config.tls_server_name);
      if (config.insecure) json.key("insecure-skip-tls-verify").value(true);
      if (!config.proxy_url.empty()) json.key("proxy-url").value(config.proxy_url);
      std::string ca = config.ca.data;
      if (ca.empty() && !config.ca.path.empty()) ca = readSmallFile(config.ca.path).value_or("");
      if (!ca.empty()) json.key("certificate-authority-data").value(base64(ca));
      json.endObject();
    }
    json.endObject();
    json.endObject();
    return out;
  }

  Result<Credential> run() {
    Result<std::string> printed = runPlugin(plugin_, exec_info_, clock_);
    if (!printed) return failure(std::move(printed).error());
    Credential credential;
    std::string api_version;
    std::optional<WallTime> expires;
    JsonParser parser;
    Result<void> parsed = parser.parse(*printed, [&](JsonCursor root) {
      root.members([&](std::string_view key, JsonCursor value) {
        if (key == "apiVersion") api_version = value.text();
        if (key != "status") return;
        value.members([&](std::string_view name, JsonCursor field) {
          if (name == "token") credential.authorization = fmt::format("Bearer {}", field.text());
          if (name == "clientCertificateData") credential.client_cert = field.text();
          if (name == "clientKeyData") credential.client_key = field.text();
          if (name != "expirationTimestamp") return;
          const Result<WallTime> time = parseRfc3339(field.text());
          if (time) expires = *time;
          if (!time) field.fail("not a time");
        });
      });
    });
    if (!parsed) return failure(std::move(parsed).error().within("its ExecCredential"));
    if (api_version != plugin_.api_version) {
      return failure(fmt::format("answered in apiVersion \"{}\", not \"{}\"", api_version,
                                 plugin_.api_version));
    }
    if (credential.authorization.size() <= 7) credential.authorization.clear();
    if (credential.client_cert.empty() != credential.client_key.empty()) {
      return failure("gave only one of clientCertificateData and clientKeyData");
    }
    if (credential.authorization.empty() && credential.client_cert.empty()) {
      return failure("gave neither a token nor a client certificate");
    }
    expires_ = expires;
    return credential;
  }

  ExecPlugin plugin_;
  const Clock& clock_;
  std::string exec_info_;
  std::optional<Credential> last_;
  std::optional<WallTime> expires_;
};

}  // namespace

std::unique_ptr<CredentialSource> makeCredentialSource(const ClientConfig& config,
                                                       const Clock& clock) {
  if (config.exec) return std::make_unique<ExecCredential>(config, clock);
  if (!config.token_file.empty()) return std::make_unique<TokenFile>(config.token_file, clock);
  if (!config.token.empty()) return std::make_unique<FixedCredential>("Bearer " + config.token);
  if (!config.username.empty()) {
    return std::make_unique<FixedCredential>("Basic " +
                                             base64(config.username + ":" + config.password));
  }
  return std::make_unique<FixedCredential>("");
}

}  // namespace mbcas::kube
