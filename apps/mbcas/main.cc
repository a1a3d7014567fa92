// mbcas: the command line of MBCAS, also `kubectl mbcas`.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/mbcas/commands.h"

int main(int argc, char** argv) {
  using namespace mbcas::cli;
  int exit_code = kDone;
  CLI::App app("Market-based CPU allocation for Kubernetes and plain Linux hosts.", "mbcas");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help for every command");
  app.add_subcommand("version", "Print the version")->callback([] {
    std::puts("mbcas " MBCAS_VERSION);
  });
  addDemo(app, exit_code);
  addInspect(app, exit_code);
  addRun(app, exit_code);
  addSimulate(app, exit_code);
  addPause(app, exit_code);
  addResize(app, exit_code);
  addRestore(app, exit_code);
  addSolve(app, exit_code);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help or the complaint; its own exit codes start at 100.
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return exit_code;
}
