#include "test/support/control_plane.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

extern char** environ;

namespace mbcas::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Far above what any step takes, since the machine may be busy with other tests.
constexpr std::chrono::seconds kAnswerTimeout{180};
constexpr std::chrono::seconds kExitTimeout{30};

std::unexpected<std::string> systemError(const std::string& what) {
  return std::unexpected(what + ": " + std::strerror(errno));
}

// Starts a program whose standard input and output are `channel`, if there is one.
std::expected<pid_t, std::string> spawn(const std::vector<std::string>& command, int channel) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (channel >= 0) {
    posix_spawn_file_actions_adddup2(&actions, channel, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, channel, STDOUT_FILENO);
  }
  pid_t pid = 0;
  const int code = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return std::unexpected(command[0] + ": " + std::strerror(code));
  return pid;
}

bool exitsWithin(pid_t pid, milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    if (steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

}  // namespace

std::string clusterTool() {
  const char* root = std::getenv("MBCAS_SOURCE_DIR");
  return std::string(root == nullptr ? "." : root) + "/tools/cluster/cluster";
}

std::optional<std::string> ControlPlane::skipReason() {
  const auto check = spawn({clusterTool(), "build", "control-plane", "--check"}, -1);
  if (!check) return check.error();
  int status = 0;
  while (waitpid(*check, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  return "Kubernetes is not built: run tools/cluster/cluster build control-plane";
}

std::expected<std::unique_ptr<ControlPlane>, std::string> ControlPlane::start() {
  return start(Options{});
}

std::expected<std::unique_ptr<ControlPlane>, std::string> ControlPlane::start(
    const Options& options) {
  std::vector<std::string> command{clusterTool(), "control-plane", "--json"};
  for (const auto& user : options.users) command.push_back("--user=" + user);
  for (const auto& arg : options.apiserverArgs) command.push_back("--apiserver-arg=" + arg);
  for (const auto& arg : options.etcdArgs) command.push_back("--etcd-arg=" + arg);
  if (options.serviceAccountAdmission) command.push_back("--service-accounts");

  // A socket rather than pipes: a write to a dead supervisor is then an error and no signal.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return systemError("socketpair");
  }
  const auto pid = spawn(command, ends[1]);
  close(ends[1]);
  if (!pid) {
    close(ends[0]);
    return std::unexpected(pid.error());
  }
  std::unique_ptr<ControlPlane> plane(new ControlPlane(*pid, ends[0]));
  const auto line = plane->readLine();
  if (!line) return std::unexpected("the control plane did not start: " + line.error());

  const auto json = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::unexpected("unexpected answer: " + *line);
  Facts& facts = plane->facts_;
  facts.id = json.value("id", "");
  facts.server = json.value("server", "");
  facts.caFile = json.value("caFile", "");
  facts.token = json.value("token", "");
  facts.kubeconfig = json.value("kubeconfig", "");
  facts.kubectl = json.value("kubectl", "");
  facts.dir = json.value("dir", "");
  const auto users = json.value("users", nlohmann::json::object());
  for (const auto& [name, user] : users.items()) facts.userTokens[name] = user.value("token", "");
  facts.pids = json.value("pids", std::map<std::string, pid_t>{});
  return plane;
}

ControlPlane::~ControlPlane() {
  close(channel_);
  if (exitsWithin(supervisor_, kExitTimeout)) return;
  kill(supervisor_, SIGKILL);
  while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::expected<void, std::string> ControlPlane::command(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  if (send(channel_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return systemError("control plane");
  }
  const auto answer = readLine();
  if (!answer) return std::unexpected(answer.error());
  const auto json = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::unexpected("unexpected answer: " + *answer);
  if (!json.value("ok", false)) return std::unexpected(json.value("error", *answer));
  return {};
}

std::expected<std::string, std::string> ControlPlane::readLine() {
  const auto deadline = steady_clock::now() + kAnswerTimeout;
  while (true) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) return std::unexpected("no answer in time");
    pollfd waiting{.fd = channel_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[4096];
    const ssize_t count = read(channel_, buffer, sizeof buffer);
    if (count == 0) return std::unexpected("the supervisor ended; its messages are on stderr");
    if (count < 0 && errno != EINTR) return systemError("read");
    if (count > 0) unread_.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace mbcas::test
