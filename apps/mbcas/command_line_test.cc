// What users of kubectl expect of a command line: help, suggestions, flags wherever they stand, and
// one line about what is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "test/support/command.h"
#include "test/support/recorded_server.h"

namespace mbcas::test {
namespace {

using Words = std::vector<std::string>;

Outcome run(Words words) {
  words.insert(words.begin(), MBCAS_BINARY);
  return runCommand(std::move(words));
}

// Every command, with what it needs to be a whole one.
const std::vector<Words> kCommands = {{"demo"},
                                      {"top"},
                                      {"ui"},
                                      {"explain"},
                                      {"diff"},
                                      {"report"},
                                      {"doctor"},
                                      {"pods", "list"},
                                      {"pods", "usage"},
                                      {"resize"},
                                      {"restore"},
                                      {"mode"},
                                      {"pause"},
                                      {"resume"},
                                      {"run"},
                                      {"inspect", "cgroups"},
                                      {"inspect", "machine"},
                                      {"solve"},
                                      {"simulate"},
                                      {"completion"},
                                      {"help"},
                                      {"version"}};

std::string helpOf(Words command) {
  command.emplace_back("--help");
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

TEST(CommandLine, SaysItsVersion) {
  const Outcome flag = run({"--version"});
  EXPECT_EQ(flag.exit_code, 0);
  EXPECT_TRUE(std::regex_match(flag.out, std::regex("mbcas [0-9]+\\.[0-9]+\\.[0-9]+.*\n")))
      << flag.out;
  EXPECT_EQ(run({"version"}).out, flag.out);
  const auto json = nlohmann::json::parse(run({"version", "-o", "json"}).out);
  EXPECT_EQ("mbcas " + json.at("version").get<std::string>() + "\n", flag.out);
  EXPECT_TRUE(run({"version", "-o", "yaml"}).out.starts_with("version: "));
}

TEST(CommandLine, AloneItPrintsHelp) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("\n  explain "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out, run({"help"}).out);
}

TEST(CommandLine, AGroupOfCommandsPrintsItsOwnHelp) {
  for (const char* group : {"pods", "inspect"}) {
    const Outcome outcome = run({group});
    EXPECT_EQ(outcome.exit_code, 2) << "nothing was done";
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, helpOf({group}));
  }
}

TEST(CommandLine, SuggestsWhatWasMeant) {
  for (const auto& [typed, meant] : std::vector<std::pair<Words, std::string>>{
           {{"tpo"}, "mbcas: unknown command tpo; did you mean top? "},
           {{"explian", "x"}, "mbcas: unknown command explian; did you mean explain? "},
           {{"sim"}, "mbcas: unknown command sim; did you mean simulate? "},
           {{"describe", "x"}, "mbcas: unknown command describe; did you mean explain? "},
           {{"get", "pods"}, "mbcas: unknown command get; did you mean pods list? "},
           {{"pods", "lst"}, "mbcas pods: unknown command lst; did you mean list? "},
           {{"cook"}, "mbcas: unknown command cook; mbcas --help lists all commands"},
           {{"top", "--srot", "pod"}, "mbcas top: unknown flag --srot; did you mean --sort? "},
           {{"top", "--once", "--xyzzy"}, "mbcas top: unknown flag --xyzzy; mbcas top --help "},
           {{"help", "tpo"}, "mbcas help: tpo: neither a command nor a topic; did you mean top? "},
           {{"top", "--sort", "pdo"}, "mbcas top: --sort: pdo is not one of "},
           {{"pods", "list", "-o", "jsn"}, "; did you mean json?"},
       }) {
    const Outcome outcome = run(typed);
    EXPECT_EQ(outcome.exit_code, 2) << typed.front();
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(meant), std::string::npos) << outcome.err;
  }
}

// One line, the command that speaks first, and in the end what to do.
TEST(CommandLine, SaysOnceWhatIsWrongAndWhatToDo) {
  for (const Words& words : std::vector<Words>{{"explain"},
                                               {"explain", "a", "b"},
                                               {"explain", "a/b/c"},
                                               {"explain", "deploy/"},
                                               {"top", "--node"},
                                               {"top", "--interval", "soon"},
                                               {"top", "--interval", "2 days"},
                                               {"top", "x"},
                                               {"resize", "a"},
                                               {"resize", "a", "--cpu"},
                                               {"restore"},
                                               {"demo", "--cpus", "two", "--model"},
                                               {"demo", "--cpus", "2"},
                                               {"demo", "--duration", "1s"},
                                               {"inspect", "machine", "--interval", "0"},
                                               {"simulate"},
                                               {"solve", "--jsonl", "-o", "yaml"},
                                               {"top", "--as-group", "dev"},
                                               {"doctor", "--pre", "--host"},
                                               {"-n", "shop"},
                                               {"-n"},
                                               {"--xyzzy"}}) {
    std::string all;
    for (const std::string& word : words) all += word + " ";
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 2) << all;
    EXPECT_EQ(outcome.out, "") << all;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << all << "\n" << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("mbcas")) << outcome.err;
    // No words of the parser's own.
    for (const char* foreign : {"TEXT", "FLOAT", "INT", "not expected", "Could not convert"}) {
      EXPECT_EQ(outcome.err.find(foreign), std::string::npos) << outcome.err;
    }
  }
}

TEST(CommandLine, FlagsStandBeforeTheCommandOrAfterIt) {
  const RecordedServer server("test/golden/cli/cluster.json");
  const Outcome after =
      run({"pods", "list", "-n", "kube-system", "--kubeconfig", server.kubeconfig()});
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_NE(after.out.find("proxy-1"), std::string::npos);
  for (const Words& words : std::vector<Words>{
           {"-n", "kube-system", "--kubeconfig", server.kubeconfig(), "pods", "list"},
           {"--namespace=kube-system", "--kubeconfig=" + server.kubeconfig(), "pods", "list"},
           {"-nkube-system", "pods", "--kubeconfig", server.kubeconfig(), "list"},
           {"-n", "shop", "--kubeconfig", server.kubeconfig(), "pods", "list", "-n",
            "kube-system"}}) {
    const Outcome before = run(words);
    EXPECT_EQ(before.exit_code, 0) << before.err;
    EXPECT_EQ(before.out, after.out);
  }
}

TEST(CommandLine, ActsAsSomebodyElse) {
  const RecordedServer server("test/golden/cli/cluster.json");
  const Outcome outcome =
      run({"--as", "alice", "--as-group", "dev", "--as-group", "ops", "--as-uid", "7", "pods",
           "list", "--kubeconfig", server.kubeconfig()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Words seen = server.impersonations();
  ASSERT_FALSE(seen.empty());
  for (const std::string& one : seen) EXPECT_EQ(one, "alice uid 7 in dev,ops");
}

TEST(CommandLine, AnotherClusterOrUserOfTheKubeconfig) {
  const RecordedServer server("test/golden/cli/cluster.json");
  const auto list = [&](Words words) {
    words.insert(words.end(), {"pods", "list", "--kubeconfig", server.kubeconfig()});
    return run(words);
  };
  EXPECT_EQ(list({"--cluster", "c", "--user", "u"}).exit_code, 0);
  const Outcome cluster = list({"--cluster", "other"});
  EXPECT_EQ(cluster.exit_code, 1);
  EXPECT_NE(cluster.err.find("no cluster named \"other\""), std::string::npos) << cluster.err;
  const Outcome user = list({"--user", "other"});
  EXPECT_NE(user.err.find("no user named \"other\""), std::string::npos) << user.err;
}

TEST(CommandLine, TimesHaveUnits) {
  for (const char* seconds : {"12", "12s", "12000ms", "0.2m", "0m12s"}) {
    const Outcome outcome = run(
        {"demo", "--model", "--cpus", "1", "--duration", seconds, "-o", "json", "--report", ""});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.at("phases")[1].at("seconds"), 6) << seconds;
  }
  // As before.
  EXPECT_EQ(run({"demo", "--model", "--cpus", "1", "--seconds", "12", "--json", "--report", ""})
                .exit_code,
            0);
}

TEST(CommandLine, EveryTimeIsADuration) {
  std::size_t times = 0;
  for (const Words& command : kCommands) {
    const std::string help = helpOf(command);
    for (const char* flag :
         {"interval", "duration", "for", "timeout", "request-timeout", "best-effort"}) {
      const std::string shown = std::string("      --") + flag + " ";
      const std::size_t at = help.find(shown);
      if (at == std::string::npos) continue;
      ++times;
      EXPECT_EQ(help.substr(at + shown.size(), 8), "DURATION") << command.front() << " " << flag;
    }
  }
  EXPECT_GE(times, 20u);
}

TEST(CommandLine, EveryOutputHasTheFormatsOfScripts) {
  std::size_t commands = 0;
  for (const Words& command : kCommands) {
    const std::string help = helpOf(command);
    const std::size_t flag = help.find("-o, --output ");
    if (flag == std::string::npos) continue;
    ++commands;
    const std::string formats = help.substr(flag, help.find("(default", flag) - flag);
    for (const char* format : {"json", "yaml", "name"}) {
      // A version is none of several things with names; kubectl's has these two formats, too.
      if (command.front() == "version" && std::string_view(format) == "name") continue;
      EXPECT_NE(formats.find(format), std::string::npos) << command.front() << ": " << formats;
    }
  }
  EXPECT_EQ(commands, 19u) << "all but ui, completion and help";
}

TEST(Help, HasNoWordsOfTheParser) {
  static const std::regex kForeign(
      R"(\b(TEXT|FLOAT|UINT|INT|OPTIONS|Excludes|Needs|REQUIRED|SUBCOMMAND|NONNEGATIVE)\b| in \[)");
  for (const Words& command : kCommands) {
    const std::string help = helpOf(command);
    std::smatch found;
    EXPECT_FALSE(std::regex_search(help, found, kForeign)) << found.str() << " in:\n" << help;
  }
}

TEST(Help, GroupsFlagsAndShowsDefaults) {
  const std::string help = helpOf({"pods", "usage"});
  std::size_t at = 0;
  for (const char* text :
       {"Usage: mbcas pods usage [FLAGS]\n", "\nFlags:\n", "-o, --output",
        "table, wide, json, yaml, name (default table)", "\nWhich pods:\n", "-A, --all-",
        "\nThis machine:\n", "--interval DURATION", "(default 1s)", "\nCluster:\n",
        "-n, --namespace NAMESPACE", "--as USER", "(default 10s)"}) {
    const std::size_t found = help.find(text, at);
    EXPECT_NE(found, std::string::npos) << text << " is missing, or not here:\n" << help;
    if (found != std::string::npos) at = found;
  }
}

TEST(Help, ListsAndCommandsStayOnTheirLines) {
  for (const Words& command : kCommands) {
    std::istringstream lines(helpOf(command));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(' ')) continue;
      // What is indented is as it was written; of a list that is not, a paragraph was made.
      EXPECT_EQ(line.find("  "), std::string::npos) << command.back() << ": " << line;
      EXPECT_FALSE(line.starts_with("kubectl ")) << command.back() << ": " << line;
    }
  }
}

TEST(Help, OfResumeIsItsOwn) {
  const std::string help = helpOf({"resume"});
  EXPECT_NE(help.find("\n  mbcas resume"), std::string::npos) << help;
  EXPECT_EQ(help.find("\n  mbcas pause"), std::string::npos) << help;
}

TEST(Help, KeepsTheLinesOfListsAndCommands) {
  for (const auto& [command, line] : std::vector<std::pair<std::string, std::string>>{
           {"mode", "\n  recommend   the same"},
           {"restore", "\n  kubectl annotate pod web-1 mbcas.io/managed=false\n"}}) {
    const std::string help = helpOf({command});
    EXPECT_NE(help.find(line), std::string::npos) << help;
  }
}

TEST(Help, IsNotWiderThanATerminal) {
  for (const Words& command : kCommands) {
    std::istringstream lines(helpOf(command));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100u) << command.back() << ": " << line;
    }
  }
  for (const char* topic :
       {"quickstart", "columns", "modes", "restoring", "annotations", "exit-codes"}) {
    std::istringstream lines(run({"help", topic}).out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100u) << topic << ": " << line;
    }
  }
}

TEST(Plugin, NamesItselfInComplaints) {
  const std::string folder = MBCAS_BINARY;
  const Outcome outcome =
      runCommand({folder.substr(0, folder.rfind('/')) + "/kubectl-mbcas", "tpo"});
  EXPECT_EQ(outcome.err,
            "kubectl mbcas: unknown command tpo; did you mean top? kubectl mbcas --help lists all "
            "commands\n");
}

}  // namespace
}  // namespace mbcas::test
