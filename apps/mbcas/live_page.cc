#include "apps/mbcas/live_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/cli/explain.h"
#include "mbcas/cli/what_if.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::app {
namespace {

// How a pod came to its limit. The page sends what it was shown of the pod, so that this answers
// for any moment of a recording, too.
Result<std::string> explainPod(std::string body) {
  Result<cli::Decision> decision = cli::parseDecision(std::move(body));
  if (!decision) return failure(std::move(decision).error());
  cli::Evidence evidence{.name_space = decision->pod.name_space,
                         .pod = decision->pod.pod,
                         .node = decision->node,
                         .source = "state of " + decision->node,
                         .now = decision->time};
  evidence.decision = *std::move(decision);
  return cli::explanationJson(evidence, cli::explain(evidence));
}

Result<std::string> answerWhatIf(std::string body) {
  const Result<cli::WhatIf> question = cli::parseWhatIf(std::move(body));
  if (!question) return failure(question.error());
  return cli::whatIfJson(answer(*question));
}

bool hasDisplay() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

// In the user's browser, if the system knows how. Whatever it says is not for the terminal.
bool openInBrowser(const std::string& address) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  // The signals that this process waits for are blocked in it, and should not be in a browser.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  // Ctrl-C is not for the browser either.
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::string program = "xdg-open";
  std::string argument = address;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, program.c_str(), &files, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error == 0;
}

}  // namespace

void addPageFlags(CLI::App& command, PageFlags& flags, CLI::Option* ui) {
  CLI::Option* port =
      command.add_option("--port", flags.port, "Of the page, on 127.0.0.1 (default: any free one)")
          ->check(CLI::Range(1, 65535));
  CLI::Option* no_open =
      command.add_flag("--no-open", flags.no_open, "Print the address and open no browser");
  if (ui == nullptr) return;
  port->needs(ui);
  no_open->needs(ui);
}

Result<void> LivePage::start(const PageFlags& flags, const Source& source) {
  std::string text;
  JsonWriter json(text);
  json.beginObject();
  json.key("kind").value(source.kind);
  json.key("title").value(source.title);
  json.key("detail").value(source.detail);
  json.key("cluster").value(source.cluster);
  json.key("version").value(MBCAS_VERSION);
  json.endObject();
  server_.describe(std::move(text));
  server_.answer("/api/explain", explainPod);
  server_.answer("/api/what-if", answerWhatIf);
  if (Result<void> started = server_.start(flags.port); !started) return started;
  told_ = server_.address();
  const bool opened = !flags.no_open && hasDisplay() && openInBrowser(told_);
  say(fmt::format("{} {}", opened ? "Opening" : "Open in a browser on this machine:", told_));
  say("The address is good once. Ctrl-C ends the page.");
  std::fflush(stdout);
  return {};
}

void LivePage::onFollow(std::function<void(std::string node)> followed) {
  server_.answer("/api/follow",
                 [followed = std::move(followed)](std::string body) -> Result<std::string> {
                   std::string node;
                   kube::JsonParser parser;
                   const Result<void> parsed = parser.parse(body, [&](kube::JsonCursor root) {
                     root.members([&](std::string_view key, kube::JsonCursor value) {
                       if (key == "node") node = value.text();
                     });
                   });
                   if (!parsed) return failure(parsed.error());
                   if (node.empty() || node.size() > 253) return failure("no name of a node");
                   followed(std::move(node));
                   return std::string("{}");
                 });
}

void LivePage::onPods(PodsOf pods) {
  server_.answer("/api/pods", [pods = std::move(pods)](std::string body) -> Result<std::string> {
    const Result<cli::PodQuestion> question = cli::parsePodQuestion(std::move(body));
    if (!question) return failure(question.error());
    return cli::answerJson(pods(*question));
  });
}

void LivePage::setStatus(std::string_view state, std::string_view text) {
  std::string status;
  JsonWriter json(status);
  json.beginObject();
  json.key("state").value(state);
  json.key("text").value(text);
  json.endObject();
  server_.setStatus(std::move(status));
}

void LivePage::publish(const cli::NodeRecord& node) {
  server_.publish(cli::stateJson(node));
}

void LivePage::publish(const std::string& state) {
  server_.publish(state);
}

void LivePage::tellAddress() {
  std::string address = server_.address();
  if (address == told_) return;
  told_ = std::move(address);
  say("For another browser: " + told_);
  std::fflush(stdout);
}

}  // namespace mbcas::app
