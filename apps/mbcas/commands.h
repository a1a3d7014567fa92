// The commands of `mbcas`, one file each. A command adds itself and its flags to the parser; when
// it is the one that was asked for, its callback runs it and leaves the exit code: 0 done, 1
// failed, 2 used wrongly.
#pragma once

namespace CLI {
class App;
}

namespace mbcas::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

void addInspect(CLI::App& app, int& exit_code);
void addPause(CLI::App& app, int& exit_code);  // and resume
void addResize(CLI::App& app, int& exit_code);
void addRestore(CLI::App& app, int& exit_code);
void addSolve(CLI::App& app, int& exit_code);

}  // namespace mbcas::cli
