// mbcas: the command line of MBCAS, also `kubectl mbcas`. Called mbcas-controller, it is that.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/mbcas-controller/controller.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/completion.h"

namespace mbcas::cli {
namespace {

void addCommands(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help for every command");
  addDemo(app, exit_code);
  addTop(app, exit_code);
  addUi(app, exit_code);
  addExplain(app, exit_code);
  addDoctor(app, exit_code);
  addPods(app, exit_code);
  addResize(app, exit_code);
  addRestore(app, exit_code);
  addPause(app, exit_code);
  addRun(app, exit_code);
  addInspect(app, exit_code);
  addSolve(app, exit_code);
  addSimulate(app, exit_code);
  addCompletion(app, exit_code);
  addHelp(app, exit_code);
  app.add_subcommand("version", "Print the version")
      ->footer("Example: mbcas version")
      ->callback([] { std::puts("mbcas " MBCAS_VERSION); });
  app.footer("Start with: mbcas help quickstart");
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

int run(int argc, char** argv) {
  const std::string self = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "mbcas";
  if (self == "mbcas-controller") return runController(argc, argv);
  int exit_code = kDone;
  CLI::App app("Market-based CPU allocation for Kubernetes and plain Linux hosts.",
               self == "kubectl-mbcas" ? "kubectl mbcas" : "mbcas");
  addCommands(app, exit_code);
  if (self == "kubectl-mbcas") showAsPlugin(app);

  const bool asked_by_kubectl = self == "kubectl_complete-mbcas";
  if (asked_by_kubectl || (argc > 1 && std::string_view(argv[1]) == "__complete")) {
    const std::vector<std::string> words(argv + (asked_by_kubectl ? 1 : 2), argv + argc);
    std::fputs(completionText(complete(app, words, lookUp)).c_str(), stdout);
    return kDone;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help or the complaint; its own exit codes start at 100.
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace mbcas::cli

int main(int argc, char** argv) {
  return mbcas::cli::run(argc, argv);
}
