// mbcas: the command line of MBCAS, also `kubectl mbcas`. Called mbcas-controller, it is that.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/mbcas-controller/controller.h"
#include "apps/mbcas/command_line.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/completion.h"
#include "apps/mbcas/help_format.h"
#include "apps/mbcas/terminal.h"

namespace mbcas::app {
namespace {

constexpr std::size_t kNoTerminal = 100;  // columns of the help

void addCommands(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "mbcas " MBCAS_VERSION, "Print the version");
  addDemo(app, exit_code);
  addTop(app, exit_code);
  addUi(app, exit_code);
  addExplain(app, exit_code);
  addReport(app, exit_code);
  addDiff(app, exit_code);
  addDoctor(app, exit_code);
  addPods(app, exit_code);
  addResize(app, exit_code);
  addRestore(app, exit_code);
  addMode(app, exit_code);
  addPause(app, exit_code);
  addRun(app, exit_code);
  addInspect(app, exit_code);
  addSolve(app, exit_code);
  addSimulate(app, exit_code);
  addCompletion(app, exit_code);
  addHelp(app, exit_code);
  addVersion(app, exit_code);
  app.footer("Start with: mbcas help quickstart");
}

// In which part of the help a command stands; those that are not here come last.
void groupCommands(CLI::App& app) {
  const std::pair<const char*, std::vector<const char*>> kGroups[] = {
      {"See it", {"demo", "ui", "top", "explain", "report", "diff", "doctor", "pods"}},
      {"Change it", {"mode", "resize", "restore", "pause", "resume"}},
      {"On a machine without Kubernetes", {"run", "inspect"}},
      {"On paper", {"solve", "simulate"}}};
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->group("Other commands");
    for (const auto& [group, names] : kGroups) {
      for (const char* name : names) {
        if (command->get_name() == name) command->group(group);
      }
    }
  }
}

// Examples as the user has to type them.
void showAsPlugin(CLI::App& app) {
  std::string footer = app.get_footer();
  for (const std::string before : {"\n  mbcas ", ": mbcas "}) {
    const std::string after = before.substr(0, before.size() - 6) + "kubectl mbcas ";
    for (std::size_t at = footer.find(before); at != std::string::npos;
         at = footer.find(before, at + after.size())) {
      footer.replace(at, before.size(), after);
    }
  }
  app.footer(footer);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    showAsPlugin(*command);
  }
}

int refuse(const CLI::App& app, const std::vector<std::string>& words,
           const CLI::ParseError& error) {
  // `mbcas pods` is a question rather than a mistake, but nothing was done.
  if (const CLI::App* const group = groupOf(app, words); group != nullptr && group != &app) {
    std::fputs(group->help(app.get_name()).c_str(), stderr);
    return kUsage;
  }
  const Complaint complaint = complaintAbout(app, words, error);
  complain(complaint.speaker, complaint.message);
  return kUsage;
}

int run(int argc, char** argv) {
  const std::string self = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "mbcas";
  if (self == "mbcas-controller") return runController(argc, argv);
  int exit_code = kDone;
  CLI::App app("Market-based CPU allocation for Kubernetes and plain Linux hosts.",
               self == "kubectl-mbcas" ? "kubectl mbcas" : "mbcas");
  app.formatter(std::static_pointer_cast<CLI::FormatterBase>(
      helpFormat(isTerminal() ? terminalSize().width : kNoTerminal)));
  addCommands(app, exit_code);
  groupCommands(app);
  lastFlagCounts(app);
  if (self == "kubectl-mbcas") showAsPlugin(app);

  const bool asked_by_kubectl = self == "kubectl_complete-mbcas";
  if (asked_by_kubectl || (argc > 1 && std::string_view(argv[1]) == "__complete")) {
    std::vector<std::string> words(argv + (asked_by_kubectl ? 1 : 2), argv + argc);
    words = flagsAfterCommand(app, std::move(words));
    std::fputs(completionText(complete(app, words, lookUp)).c_str(), stdout);
    return kDone;
  }
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  words = flagsAfterCommand(app, std::move(words));
  if (words.empty()) words = {"help"};
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return refuse(app, words, error);
  }
  return exit_code;
}

}  // namespace
}  // namespace mbcas::app

int main(int argc, char** argv) {
  return mbcas::app::run(argc, argv);
}
