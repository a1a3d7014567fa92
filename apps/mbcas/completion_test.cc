// Completion as shells do it: the words that are offered, and real shells where they are installed.
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/command.h"
#include "test/support/golden.h"
#include "test/support/recorded_server.h"

namespace mbcas::test {
namespace {

using Words = std::vector<std::string>;

// What is offered after these words, without descriptions; the last one is being typed.
Words offered(Words words) {
  words.insert(words.begin(), {MBCAS_BINARY, "__complete"});
  const Outcome outcome = runCommand(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  Words lines;
  for (std::size_t at = 0; at < outcome.out.size();) {
    const std::size_t end = outcome.out.find('\n', at);
    const std::string line = outcome.out.substr(at, end - at);
    lines.push_back(line.substr(0, line.find('\t')));
    at = end + 1;
  }
  return lines;
}

TEST(Completion, CommandsAndFlags) {
  EXPECT_EQ(offered({"re"}), (Words{"report", "resize", "restore", "resume", ":4"}));
  EXPECT_EQ(offered({"pods", ""}), (Words{"list", "usage", ":4"}));
  EXPECT_EQ(offered({"top", "--so"}), (Words{"--sort", "--socket", ":4"}));
  EXPECT_EQ(offered({"solve", "-o", ""}), (Words{"table", "json", "yaml", "name", ":4"}));
  EXPECT_EQ(offered({"solve", "--output", "t"}), (Words{"table", ":4"}));
  EXPECT_EQ(offered({"completion", ""}), (Words{"bash", "zsh", "fish", ":4"}));
  EXPECT_EQ(offered({"help", "mo"}), (Words{"modes", ":4"}));
  EXPECT_EQ(offered({"solve", ""}), (Words{":0"})) << "a file";
  EXPECT_EQ(offered({"top", "--kubeconfig", ""}), (Words{":0"}));
  EXPECT_EQ(offered({"nonsense", ""}).back(), ":4");
}

TEST(Completion, ValuesAfterAnEqualsSign) {
  EXPECT_EQ(offered({"solve", "--output=t"}), (Words{"--output=table", ":4"}));
  // As bash breaks it.
  EXPECT_EQ(offered({"solve", "--output", "=", "t"}), (Words{"table", ":4"}));
  EXPECT_EQ(offered({"solve", "--output", "="}), (Words{"table", "json", "yaml", "name", ":4"}));
}

TEST(Completion, AsksTheCluster) {
  const RecordedServer server("test/golden/cli/cluster.json");
  const Words flags = {"--kubeconfig", server.kubeconfig()};
  const auto with = [&](Words words) {
    words.insert(words.begin() + 1, flags.begin(), flags.end());
    return offered(words);
  };
  EXPECT_EQ(with({"explain", "w"}), (Words{"web-1", ":4"}));
  EXPECT_EQ(with({"explain", "kube-system/"}), (Words{"kube-system/proxy-1", ":4"}));
  EXPECT_EQ(with({"explain", "pod/w"}), (Words{"pod/web-1", ":4"}));
  EXPECT_EQ(with({"explain", "-n", "kube-system", ""}), (Words{"proxy-1", ":4"}));
  EXPECT_EQ(with({"top", "-n", ""}), (Words{"kube-system", "mbcas-system", "shop", ":4"}));
  EXPECT_EQ(offered({"-n", "kube-system", "--kubeconfig", server.kubeconfig(), "explain", ""}),
            (Words{"proxy-1", ":4"}))
      << "flags before the command";
  EXPECT_EQ(with({"top", "--node", ""}), (Words{"node-1", ":4"}));
  EXPECT_EQ(offered({"explain", "--kubeconfig", "/nonexistent", "w"}), (Words{":4"}));
}

TEST(Completion, KubectlAsksByAnotherName) {
  const std::string binary = MBCAS_BINARY;
  const Outcome outcome =
      runCommand({binary.substr(0, binary.rfind('/')) + "/kubectl_complete-mbcas", "pods", "u"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "usage\tCPU in use, next to requests and limits\n:4\n");
}

// Runs the shell; skips where it is not installed.
Outcome shell(const std::string& path, const Words& arguments, const std::string& input) {
  Words words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return runCommand(words, input);
}

std::string script(const char* name) {
  return runCommand({MBCAS_BINARY, "completion", name}).out;
}

TEST(Completion, InBash) {
  const std::string program = script("bash") + R"(
try() {  # the words, the last one being typed
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _mbcas 2>/dev/null
  echo "${COMPREPLY[*]}"
}
try "$MBCAS" re
try "$MBCAS" pods usage --ho
try "$MBCAS" solve -o ''
try "$MBCAS" solve --output = t
complete -p mbcas
)";
  const Outcome outcome =
      shell("/bin/bash", {"-c", "MBCAS=$0; . /dev/stdin", MBCAS_BINARY}, program);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "report resize restore resume\n--host\ntable json yaml name\ntable\ncomplete -F _mbcas "
            "mbcas\n");
}

TEST(Completion, InZsh) {
  if (::access("/usr/bin/zsh", X_OK) != 0) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(shell("/usr/bin/zsh", {"-n", "/dev/stdin"}, script("zsh")).err, "");
}

TEST(Completion, InFish) {
  if (::access("/usr/bin/fish", X_OK) != 0) GTEST_SKIP() << "fish is not installed";
  const std::string binary = MBCAS_BINARY;
  const std::string program = "set -x PATH " + binary.substr(0, binary.rfind('/')) + " $PATH\n" +
                              script("fish") + "complete -C 'mbcas pods u'\n";
  const Outcome outcome = shell("/usr/bin/fish", {"--no-config"}, program);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "usage\tCPU in use, next to requests and limits\n");
}

}  // namespace
}  // namespace mbcas::test
