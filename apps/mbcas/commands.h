// The commands of `mbcas`, one file each. A command adds itself and its flags to the parser; when
// it is the one that was asked for, its callback runs it and leaves the exit code: 0 done, 1
// failed, 2 used wrongly.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}
namespace mbcas::host {
struct Restored;
}

namespace mbcas::app {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// Where `run` and `demo` remember what to put back.
inline constexpr const char* kHostState = "/run/mbcas/host";
inline constexpr const char* kDemoState = "/run/mbcas/demo";

void addCompletion(CLI::App& app, int& exit_code);
void addDemo(CLI::App& app, int& exit_code);
void addDiff(CLI::App& app, int& exit_code);
void addDoctor(CLI::App& app, int& exit_code);
void addExplain(CLI::App& app, int& exit_code);
void addHelp(CLI::App& app, int& exit_code);
void addInspect(CLI::App& app, int& exit_code);
void addMode(CLI::App& app, int& exit_code);
void addPause(CLI::App& app, int& exit_code);  // and resume
void addPods(CLI::App& app, int& exit_code);
void addReport(CLI::App& app, int& exit_code);
void addResize(CLI::App& app, int& exit_code);
void addRestore(CLI::App& app, int& exit_code);
void addRun(CLI::App& app, int& exit_code);
void addSimulate(CLI::App& app, int& exit_code);
void addSolve(CLI::App& app, int& exit_code);
void addTop(CLI::App& app, int& exit_code);
void addUi(CLI::App& app, int& exit_code);
void addVersion(CLI::App& app, int& exit_code);

// Puts back what `mbcas run` changed on this host.
int restoreHost(const std::string& root, const std::string& state);
// Says what that would be.
int showHostRestore(const std::string& state);
std::string restoreText(const host::Restored& restored);

}  // namespace mbcas::app
