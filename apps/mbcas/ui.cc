// mbcas ui: the market live, in a browser.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/host_state.h"
#include "apps/mbcas/live_page.h"
#include "apps/mbcas/scenario_file.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/cli/recording.h"
#include "mbcas/cli/sim_record.h"
#include "mbcas/sim/simulation.h"

namespace mbcas::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  mbcas ui                                   # the market of `mbcas run` on this machine
  mbcas ui --simulate evaluation/sharing/gold.yaml --speed 20
  mbcas ui node-1.mbcas                      # a recording that the page saved
  mbcas ui --no-open --port 8089             # through `ssh -L 8089:127.0.0.1:8089 host`

Prints an address on 127.0.0.1 that is good once, and opens it where there is a display. The page
shows the market of a node, each pod with how it came to its limit, and what was since the page
began; it saves that as a file. It changes nothing on the machine. docs/ui.md is a tour.

Exit code: 0 done, 1 failed, 2 the command is wrong.)";

struct Flags {
  PageFlags page;
  std::string recording;
  std::string scenario;
  std::string policy = "responsive";
  std::string socket;
  bool host = false;
  double speed = 10;
  double interval = 1;
};

int fail(std::string_view message, int code = kFailed) {
  complain("mbcas ui", message);
  return code;
}

// Until the user has had enough.
void keepOpen(LivePage& page, Patience& patience) {
  while (patience.wait(std::chrono::seconds(1))) page.tellAddress();
}

int showHost(const Flags& flags) {
  Patience patience(Patience::Keys::kQuit);
  LivePage page;
  const Result<NodeRecord> first = readHostState(flags.socket);
  const Result<void> started =
      page.start(flags.page, {.kind = "host", .title = first ? first->node : "this machine"});
  if (!started) return fail(started.error().message());
  WallTime last{};
  bool waits = false;
  do {
    const Result<NodeRecord> state = readHostState(flags.socket);
    if (!state) {
      if (!std::exchange(waits, true)) complain("mbcas ui", state.error().message());
      page.setStatus("waiting", state.error().message());
    } else {
      waits = false;
      if (std::exchange(last, state->time) != state->time) page.publish(*state);
      page.setStatus("live", "");
    }
    page.tellAddress();
  } while (patience.wait(nanos(flags.interval)));
  return kDone;
}

int showRecording(const Flags& flags) {
  std::error_code error;
  const auto size = std::filesystem::file_size(flags.recording, error);
  if (!error && size > kLongestRecording) {
    return fail(flags.recording + ": is too long for a recording");
  }
  std::ifstream file(flags.recording);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (error || !file) return fail(flags.recording + ": cannot be read");
  Result<Recording> recording = parseRecording(text);
  if (!recording)
    return fail(std::move(recording).error().within(flags.recording).message(), kUsage);
  Patience patience(Patience::Keys::kQuit);
  LivePage page;
  const std::string name = std::filesystem::path(flags.recording).filename().string();
  const Result<void> started = page.start(
      flags.page, {.kind = "recording", .title = recording->title, .detail = "saved as " + name});
  if (!started) return fail(started.error().message());
  for (std::string& state : recording->states) page.publish(std::move(state));
  page.setStatus("over", "");
  keepOpen(page, patience);
  return kDone;
}

int showSimulation(const Flags& flags) {
  const Result<sim::Scenario> scenario = loadScenario(flags.scenario);
  if (!scenario) {
    const bool unreadable = scenario.error().message().empty();
    return fail(unreadable ? "cannot read " + flags.scenario : scenario.error().message(),
                unreadable ? kFailed : kUsage);
  }
  Result<std::unique_ptr<sim::Policy>> made = sim::makePolicy(flags.policy, scenario->cpus);
  if (!made) return fail(made.error().message(), kUsage);
  RecordingPolicy policy(*std::move(made));
  sim::Simulation simulation(*scenario, policy);
  Patience patience(Patience::Keys::kQuit);
  LivePage page;
  const Result<void> started = page.start(
      flags.page, {.kind = "simulation",
                   .title = scenario->name,
                   .detail = fmt::format("policy {}, {:g} times as fast as real time. {}",
                                         flags.policy, flags.speed, scenario->description)});
  if (!started) return fail(started.error().message());
  page.setStatus("live", "");
  const SystemClock clock;
  const WallTime begin = clock.wall();
  const Nanos pause =
      nanos(std::chrono::duration<double>(scenario->interval).count() / flags.speed);
  MonotonicTime next = clock.monotonic();
  bool more = true;
  while (more) {
    more = simulation.step();
    NodeRecord node = policy.record();
    node.node = scenario->name;
    node.time = begin + simulation.now();
    page.publish(node);
    page.tellAddress();
    next = std::max(next + pause, clock.monotonic());
    if (!patience.wait(next - clock.monotonic())) return kDone;
  }
  page.setStatus("over", "The simulation is over.");
  keepOpen(page, patience);
  return kDone;
}

int uiCommand(const Flags& flags) {
  if (!flags.recording.empty()) return showRecording(flags);
  if (!flags.scenario.empty()) return showSimulation(flags);
  return showHost(flags);
}

}  // namespace

void addUi(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "ui", "Watch the market in a browser: this host, a recording, a simulation");
  command->footer(kFooter);
  CLI::Option* recording =
      command->add_option("FILE", flags->recording, "A recording that the page saved");
  CLI::Option* host = command->add_flag(
      "--host", flags->host, "The pods of `mbcas run`, or of an agent, on this machine (default)");
  CLI::Option* scenario =
      command->add_option("--simulate", flags->scenario, "A scenario on the model kernel, YAML");
  host->excludes(recording)->excludes(scenario);
  scenario->excludes(recording);
  oneOf(command->add_option("--policy", flags->policy, "With --simulate: who decides about limits"),
        {sim::policyNames().begin(), sim::policyNames().end()})
      ->needs(scenario)
      ->capture_default_str();
  command->add_option("--speed", flags->speed, "With --simulate: times as fast as real time")
      ->check(CLI::Range(0.1, 1000.0))
      ->needs(scenario)
      ->capture_default_str();
  addSocketFlag(*command, flags->socket);
  addDuration(*command, "--interval", flags->interval, "Between two looks at this host");
  addPageFlags(*command, flags->page);
  command->callback([flags, &exit_code] { exit_code = uiCommand(*flags); });
}

}  // namespace mbcas::cli
