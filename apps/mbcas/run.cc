// mbcas run: the market on this machine's own cgroups, without Kubernetes.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/local_socket.h"
#include "mbcas/base/time.h"
#include "mbcas/cli/host_record.h"
#include "mbcas/host/plane.h"
#include "mbcas/host/show.h"
#include "mbcas/host/workload.h"
#include "mbcas/policy/settings.h"

namespace mbcas::app {
namespace {

struct RunFlags {
  std::string file;
  std::string root = "/sys/fs/cgroup";
  std::string state = kHostState;
  std::string socket;
  std::string output;
  double seconds = 0;
  bool dry_run = false;
  bool plain = false;
};

Result<host::HostConfig> readConfig(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return failure(file + ": cannot be read");
  Result<host::HostConfig> config = host::parseConfig(text.str());
  if (!config) return failure(std::move(config).error().within(file));
  return config;
}

Result<host::Settings> settingsOf(const host::HostConfig& config) {
  policy::SettingsData data(config.settings.begin(), config.settings.end());
  const Result<policy::ParsedSettings> parsed = policy::parseSettings(data);
  if (!parsed) return failure(Error(parsed.error()).within("settings"));
  if (!parsed->unknown.empty()) {
    return failure(fmt::format("settings.{}: unknown", parsed->unknown.front()));
  }
  const policy::Settings& given = parsed->settings;
  const Result<demand::Kind> kind = demand::parseKind(given.estimator);
  if (!kind) return failure(kind.error());
  return host::Settings{.control = given.law,
                        .demand = {.kind = *kind,
                                   .cpus = std::max(1U, std::thread::hardware_concurrency()),
                                   .warmup = static_cast<std::uint32_t>(given.warmup),
                                   .burst_hold = given.burst_hold,
                                   .throttle_threshold = given.throttle_threshold,
                                   .ema_up = given.ema_up,
                                   .ema_down = given.ema_down},
                        .sample_interval = given.sample_interval};
}

// Starts what the file says is to be started, each in a cgroup of its own.
Result<std::vector<host::Workload>> startCommands(const kernel::Mounts& mounts,
                                                  host::Ledger& ledger, host::HostConfig& config) {
  std::vector<host::Workload> workloads;
  for (host::PodConfig& pod : config.pods) {
    if (pod.command.empty()) continue;
    pod.cgroup = fmt::format("/mbcas-{}/{}", ::getpid(), pod.name);
    if (auto made = host::makeCgroup(mounts, ledger, pod.cgroup); !made) {
      return failure(std::move(made).error());
    }
    Result<host::Workload> started = host::Workload::start(mounts, pod.cgroup, pod.command);
    if (!started) return failure(std::move(started).error().within(pod.name));
    workloads.push_back(*std::move(started));
  }
  return workloads;
}

std::string machineName() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "this machine";
}

// Where the state is shown. Without it everything else works, so that is only said.
std::optional<LocalSocket> listen(const RunFlags& flags) {
  Result<LocalSocket> socket =
      LocalSocket::listen(flags.socket.empty() ? socketOf(flags.state) : flags.socket);
  if (socket) return *std::move(socket);
  complain("mbcas run",
           fmt::format("`mbcas top --host` will not see this run: {}", socket.error().message()));
  return std::nullopt;
}

class Loop {
 public:
  Loop(host::Plane& plane, const RunFlags& flags, const kernel::Mounts& mounts, Nanos interval,
       std::optional<LocalSocket>& socket)
      : plane_(plane),
        flags_(flags),
        mounts_(mounts),
        interval_(interval),
        socket_(socket),
        live_(isTerminal() && !flags.plain && flags.output == "text"),
        patience_(live_ ? Patience::Keys::kQuit : Patience::Keys::kNone),
        screen_(live_ ? std::make_unique<Screen>() : nullptr) {}

  void run(std::vector<host::Workload>& workloads, bool only_commands) {
    const MonotonicTime start = clock_.monotonic();
    MonotonicTime next = start;
    do {
      show(plane_.tick());
      bool running = !only_commands;
      for (host::Workload& workload : workloads) running |= workload.running();
      if (!running) break;
      if (flags_.seconds > 0 && clock_.monotonic() - start >= nanos(flags_.seconds)) break;
      next = std::max(next + interval_, clock_.monotonic());
    } while (waitUntil(next));
  }

 private:
  void show(const host::View& view) {
    view_ = &view;
    if (live_) {
      picture_ = history_.screen(view);
      picture_.title = flags_.dry_run ? "mbcas run (dry run: nothing is changed)" : "mbcas run";
      picture_.subtitle = fmt::format("{}, {} CPUs   q: quit", kernel::describe(mounts_),
                                      view.capacity.count() / 1000);
      return draw();
    }
    const std::string time = formatRfc3339(clock_.wall());
    for (const host::PodView& pod : view.pods) {
      if (!pod.changed) continue;
      if (isDocument(flags_.output)) {
        printNextDocument(host::changeJson(pod, time), flags_.output);
      } else if (flags_.output == "name") {
        say("pod/" + pod.name);
      } else {
        say(time + " " + host::changeLine(pod));
      }
    }
    for (const std::string& note : view.notes) complain("mbcas run", note);
    std::fflush(stdout);
  }

  void draw() {
    const TerminalSize size = terminalSize();
    screen_->draw(view::render(picture_, size.width, size.height, wantsColours()));
  }

  // False: the user has had enough.
  bool waitUntil(MonotonicTime next) {
    while (true) {
      switch (patience_.next(next - clock_.monotonic(), socket_ ? socket_->fd() : -1)) {
        case Patience::Wake::kTime:
          return true;
        case Patience::Wake::kStop:
          return false;
        case Patience::Wake::kReadable:
          socket_->serve(
              [&] { return cli::stateJson(cli::recordOf(*view_, machine_, clock_.wall())); });
          break;
        case Patience::Wake::kResize:
          if (live_) draw();
          break;
        case Patience::Wake::kKey:
          (void)patience_.keys();
          break;
      }
    }
  }

  host::Plane& plane_;
  const RunFlags& flags_;
  const kernel::Mounts& mounts_;
  const Nanos interval_;
  std::optional<LocalSocket>& socket_;
  const std::string machine_ = machineName();
  const SystemClock clock_;
  const bool live_;
  Patience patience_;
  std::unique_ptr<Screen> screen_;
  host::Show history_;
  view::NodeScreen picture_;
  const host::View* view_ = nullptr;  // of the last tick
};

int run(const RunFlags& flags) {
  const auto fail = [](const Error& error) {
    complain("mbcas run", error.message());
    return kFailed;
  };
  Result<host::HostConfig> config = readConfig(flags.file);
  if (!config) {
    fail(config.error());
    return kUsage;
  }
  Result<host::Settings> settings = settingsOf(*config);
  if (!settings) {
    fail(Error(settings.error()).within(flags.file));
    return kUsage;
  }
  settings->dry_run = flags.dry_run;
  const Result<kernel::Mounts> mounts = kernel::detectMounts(flags.root);
  if (!mounts) return fail(mounts.error());
  Result<host::Ledger> ledger = host::Ledger::open(flags.state);
  if (!ledger) return fail(ledger.error());
  if (!ledger->content().limits.empty() || !ledger->content().made.empty()) {
    complain("mbcas run", fmt::format("an earlier run did not exit cleanly; {}",
                                      restoreText(ledger->restore(*mounts))));
  }
  int exit_code = kDone;
  {
    Result<std::vector<host::Workload>> workloads = startCommands(*mounts, *ledger, *config);
    if (workloads) {
      const bool only_commands = std::ranges::all_of(
          config->pods, [](const host::PodConfig& pod) { return !pod.command.empty(); });
      const SystemClock clock;
      host::Plane plane(*mounts, *config, *settings, clock, *ledger);
      std::optional<LocalSocket> socket = listen(flags);
      Loop(plane, flags, *mounts, settings->sample_interval, socket).run(*workloads, only_commands);
    } else {
      exit_code = fail(workloads.error());
    }
  }
  const host::Restored restored = ledger->restore(*mounts);
  complain("mbcas run", restoreText(restored));
  return restored.failures.empty() ? exit_code : kFailed;
}

}  // namespace

std::string restoreText(const host::Restored& restored) {
  std::string text = fmt::format("{} limits put back", restored.limits);
  if (restored.gone > 0) text += fmt::format(", {} cgroups had ended", restored.gone);
  for (const std::string& failure : restored.failures) text += "\n  not put back: " + failure;
  return text;
}

int restoreHost(const std::string& root, const std::string& state) {
  const Result<kernel::Mounts> mounts = kernel::detectMounts(root);
  if (!mounts) {
    complain("mbcas restore", mounts.error().message());
    return kFailed;
  }
  Result<host::Ledger> ledger = host::Ledger::open(state);
  if (!ledger) {
    complain("mbcas restore", ledger.error().message());
    return kFailed;
  }
  const host::Restored restored = ledger->restore(*mounts);
  say(restoreText(restored));
  return restored.failures.empty() ? kDone : kFailed;
}

int showHostRestore(const std::string& state) {
  std::ostringstream text;
  text << std::ifstream(state).rdbuf();
  const host::LedgerContent content = host::parseLedger(text.str());
  for (const host::Original& original : content.limits) {
    const auto limit = original.limit.millicores();
    say(fmt::format("{}: would be put back to {}", original.path,
                    limit ? fmt::format("{}m", limit->count()) : "no limit"));
  }
  for (const std::string& path : content.made) {
    say(fmt::format("{}: would be removed, with what runs in it", path));
  }
  if (content.limits.empty() && content.made.empty()) {
    say("nothing to put back");
  }
  return kDone;
}

void addRun(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Run the market on this machine's own cgroups");
  const auto flags = std::make_shared<RunFlags>();
  command->add_option("FILE", flags->file, "What to manage, as YAML")->required();
  command->add_flag("--dry-run", flags->dry_run, "Decide and show, change nothing");
  addDuration(*command, "--duration,--seconds", flags->seconds,
              "Exit after so long (default: when interrupted)", 0, 1e7);
  command->add_flag("--plain", flags->plain, "A line per change instead of the live screen");
  addOutput(*command, flags->output, {"text", "json", "yaml", "name"});
  const auto of_machine = [&](CLI::Option* option, const char* type) {
    return option->type_name(type)->group(kHostGroup)->capture_default_str();
  };
  of_machine(command->add_option("--cgroup-root", flags->root, "Where the cgroup tree is mounted"),
             "FOLDER");
  of_machine(
      command->add_option("--state", flags->state, "File that remembers the original limits"),
      "FILE");
  of_machine(command->add_option("--socket", flags->socket,
                                 "Where it shows its state to top and explain (default: the state "
                                 "file's name and .sock)"),
             "FILE");
  command->footer(
      "Every limit is put back at the end (q, Ctrl-C, SIGTERM). After a crash\n"
      "`mbcas restore --host` puts the limits back. docs/host.md describes the file. While the\n"
      "command runs, `mbcas top --host` and `mbcas explain --host POD` show more.\n\n"
      "Example:\n"
      "  cat > pods.yaml <<EOF\n"
      "  pods:\n"
      "    - {name: web, cgroup: /system.slice/nginx.service, limit: 500m}\n"
      "    - {name: batch, command: [gzip, -9, big.tar], limit: 1}\n"
      "  EOF\n"
      "  mbcas run pods.yaml");
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace mbcas::app
