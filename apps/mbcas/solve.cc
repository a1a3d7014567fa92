// mbcas solve: clear a market given as JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apps/mbcas/commands.h"
#include "apps/mbcas/flags.h"
#include "apps/mbcas/terminal.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/market/explain.h"
#include "mbcas/market/json.h"
#include "mbcas/market/solver.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

using market::Clearing;
using market::Problem;

constexpr const char* kFooter = R"(Example:
  echo '{"capacity":1000,"pods":[{"id":"a","bid":60,"min":100},{"id":"b","bid":40,"min":100}]}' \
    | mbcas solve

With --jsonl each line of the input is a problem, and each line of the output its answer in JSON.

Input:
  {"capacity":4000,"objective":"bargaining","pods":[
    {"id":"a","bid":250,"weight":500,"min":500,"max":2000,"guarantee":500}]}
  Capacity, min, max and guarantee are whole millicores. The objective is bargaining or welfare;
  weight defaults to 1, bid to the weight, min and guarantee to 0, max to the capacity.

Output of -o json:
  {"mode":"congested","price":0.25,"allocated":4000,"unallocated":0,"pods":[
    {"id":"a","cpu":1234,"bound":"none"}]}
  With --jsonl, a line that is not a problem gives {"error":"..."} in its place.

Exit code: 0 solved, 1 a file cannot be read or written, 2 the input or the command is wrong.)";

struct Options {
  std::string file = "-";
  std::string format;
  bool lines = false;
};

void complain(std::string_view message) {
  app::complain("mbcas solve", message);
}

// Input from anybody, perhaps without end: no more of it is kept than a problem may be long.
class Input {
 public:
  explicit Input(const std::string& file)
      : stream_(file == "-" ? stdin : std::fopen(file.c_str(), "re")) {}
  ~Input() {
    if (stream_ != nullptr && stream_ != stdin) std::fclose(stream_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  bool failed() const { return stream_ == nullptr || std::ferror(stream_) != 0; }

  // Everything, or one byte more than a problem may have.
  std::string whole() {
    std::string text;
    take(text, [&](char) { return text.size() > market::kLongestJson; });
    return text;
  }

  // The next line, or if that is too long, its beginning, one byte more than a problem may have.
  // False at the end.
  bool line(std::string& text) {
    text.clear();
    bool any = false;
    take(text, [&](char c) {
      any = true;
      if (text.size() > market::kLongestJson + 1) text.pop_back();
      return c == '\n';
    });
    if (text.ends_with('\n')) text.pop_back();
    return any;
  }

 private:
  template <class IsEnough>
  void take(std::string& text, const IsEnough& is_enough) {
    for (int c = std::getc(stream_); c != EOF; c = std::getc(stream_)) {
      text.push_back(static_cast<char>(c));
      if (is_enough(static_cast<char>(c))) return;
    }
  }

  std::FILE* stream_;
};

std::string table(const Problem& problem, const Clearing& clearing, bool colours) {
  using view::Colour;
  std::string price = "none";
  if (clearing.price) {
    price = std::isinf(*clearing.price) ? "infinite" : fmt::format("{:.6g}", *clearing.price);
  }
  const Colour mode = clearing.mode == market::Mode::kUncongested ? Colour::kGreen
                      : clearing.mode == market::Mode::kCongested ? Colour::kYellow
                                                                  : Colour::kRed;
  constexpr auto kLeft = view::Table::Align::kLeft;
  view::Table pods({{"POD", kLeft}, {"CPU"}, {"BOUND", kLeft}, {"WHY", kLeft}});
  for (std::size_t i = 0; i < problem.pods.size(); ++i) {
    constexpr std::size_t kLongestId = 40;
    const market::Award& award = clearing.pods[i];
    // An id may contain any text.
    pods.row({problem.pods[i].id.substr(0, kLongestId), fmt::format("{}m", award.cpu.count()),
              std::string(name(award.bound)), explain(problem, clearing, i)});
  }
  return fmt::format("{}   price {}   {}m of {}m allocated\n\n{}",
                     view::paint(name(clearing.mode), mode, colours), price,
                     clearing.allocated.count(), problem.capacity.count(), pods.toString(colours));
}

int solveOne(Input& input, const std::string& format) {
  const Result<Problem> problem = market::parseProblem(input.whole());
  if (input.failed()) return kFailed;
  if (!problem) {
    complain(problem.error().message());
    return kUsage;
  }
  const Result<Clearing> clearing = market::clear(*problem);
  if (!clearing) {
    complain(clearing.error().message());
    return kUsage;
  }
  if (isDocument(format)) {
    printDocument(toJson(*problem, *clearing), format);
  } else if (format == "name") {
    for (const auto& pod : problem->pods) say("pod/" + pod.id);
  } else {
    fmt::print("{}", table(*problem, *clearing, wantsColours()));
  }
  return kDone;
}

int solveLines(Input& input) {
  int exit_code = kDone;
  market::Solver solver;
  Clearing clearing;
  std::string line;
  for (std::size_t number = 1; input.line(line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<Problem> problem = market::parseProblem(line);
    const Result<void> solved =
        problem ? solver.solve(*problem, clearing) : failure(problem.error());
    if (solved) {
      fmt::print("{}\n", toJson(*problem, clearing));
      continue;
    }
    exit_code = kUsage;
    complain(fmt::format("line {}: {}", number, solved.error().message()));
    std::string error;
    JsonWriter(error).beginObject().key("error").value(solved.error().message()).endObject();
    fmt::print("{}\n", error);
  }
  return exit_code;
}

int solve(const Options& options) {
  Input input(options.file);
  if (input.failed()) {
    complain(fmt::format("cannot open {}", options.file));
    return kFailed;
  }
  const int exit_code = options.lines ? solveLines(input) : solveOne(input, options.format);
  if (input.failed()) {
    complain(fmt::format("cannot read {}", options.file));
    return kFailed;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    complain("cannot write the answer");
    return kFailed;
  }
  return exit_code;
}

}  // namespace

void addSolve(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("solve", "Divide CPU among pods as the market does");
  command->footer(kFooter);
  command->add_option("FILE", options->file, "JSON, - for standard input")->capture_default_str();
  CLI::Option* lines = command->add_flag("--jsonl", options->lines,
                                         "One problem on each line, one answer on each line");
  const CLI::Option* const format =
      addOutput(*command, options->format, {"table", "json", "yaml", "name"});
  command->callback([options, lines, format, &exit_code] {
    if (lines->count() > 0 && format->count() > 0 && options->format != "json") {
      complain("--jsonl writes JSON, and nothing else");
      exit_code = kUsage;
      return;
    }
    exit_code = solve(*options);
  });
}

}  // namespace mbcas::app
