// mbcas completion: scripts by which shells complete, and what they ask.
#include "apps/mbcas/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "apps/mbcas/cluster_flags.h"
#include "apps/mbcas/commands.h"
#include "mbcas/cli/workload.h"
#include "mbcas/view/text.h"

namespace mbcas::app {
namespace {

constexpr const char* kBash = R"(# mbcas completion bash: . <(mbcas completion bash)
_mbcas() {
  local line files=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :0) files=yes ;;
      :*) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [ "${#COMPREPLY[@]}" -eq 0 ] && [ -n "$files" ]; then compopt -o default; fi
}
complete -F _mbcas mbcas
)";

constexpr const char* kZsh = R"(#compdef mbcas
# mbcas completion zsh: . <(mbcas completion zsh), or as a file _mbcas in $fpath
_mbcas() {
  local -a candidates
  local line files=
  for line in "${(@f)$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :0) files=yes ;;
      :*|'') ;;
      *) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  if (( ${#candidates} )); then _describe -V mbcas candidates; fi
  if [[ -n $files ]]; then _files; fi
}
if [[ $zsh_eval_context == *func* ]]; then _mbcas "$@"; else compdef _mbcas mbcas; fi
)";

constexpr const char* kFish = R"(# mbcas completion fish: mbcas completion fish | source
function __mbcas_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
        switch $line
            case ':0'
                __fish_complete_path (commandline -ct)
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c mbcas -f -a '(__mbcas_complete)'
)";

constexpr const char* kFooter = R"(Examples:
  . <(mbcas completion bash)                               # this shell
  mbcas completion bash > /etc/bash_completion.d/mbcas     # all of them
  mbcas completion zsh > "${fpath[1]}/_mbcas"
  mbcas completion fish > ~/.config/fish/completions/mbcas.fish

The script completes commands, flags and their values, and asks the cluster for names of pods,
namespaces and nodes. `kubectl mbcas` completes by itself where kubectl does, if
kubectl_complete-mbcas, which is a link to mbcas, is in the PATH.)";

bool isFlag(const CLI::Option& option) {
  return option.get_expected_max() == 0;
}

bool isHidden(const CLI::Option& option) {
  return option.get_group().empty();
}

const CLI::Option* findOption(const CLI::App& app, const std::string& word) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_name(word) && word.starts_with('-')) return option;
  }
  return nullptr;
}

std::vector<const CLI::Option*> positionals(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

class Completer {
 public:
  Completer(const CLI::App& app, std::vector<std::string> words, const Lookup& lookup)
      : at_(&app), words_(std::move(words)), lookup_(lookup) {
    joinAssignments();
  }

  Completion run() {
    std::size_t positional = 0;
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      const std::string& word = words_[i];
      if (word.starts_with('-') && word.size() > 1) {
        const CLI::Option* const option = findOption(*at_, word.substr(0, word.find('=')));
        const bool takes_next =
            option != nullptr && !isFlag(*option) && word.find('=') == std::string::npos;
        if (takes_next && i + 2 == words_.size()) {
          addValues(*option, "");
          return std::move(completion_);
        }
        if (takes_next) ++i;
      } else if (const CLI::App* const command = findCommand(*at_, word)) {
        at_ = command;
        positional = 0;
      } else {
        ++positional;
      }
    }
    const std::string& word = words_.back();
    if (const std::size_t equals = word.find('='); word.starts_with('-') && equals != word.npos) {
      if (const CLI::Option* const option = findOption(*at_, word.substr(0, equals))) {
        addValues(*option, split_ ? "" : word.substr(0, equals + 1));
      }
    } else if (word.starts_with('-')) {
      addOptions();
    } else {
      addSubcommands();
      addPositional(positional);
    }
    return std::move(completion_);
  }

 private:
  // bash breaks a word at "=".
  void joinAssignments() {
    for (std::size_t i = 1; i < words_.size(); ++i) {
      if (words_[i] != "=" || !words_[i - 1].starts_with("--")) continue;
      words_[i - 1] += '=';
      split_ = i + 2 >= words_.size();
      if (i + 1 < words_.size()) words_[i - 1] += words_[i + 1];
      const auto from = words_.begin() + static_cast<std::ptrdiff_t>(i);
      words_.erase(from, from + std::min<std::ptrdiff_t>(2, words_.end() - from));
    }
    if (words_.empty()) words_.emplace_back();
  }

  void add(const std::string& text, const std::string& description = "") {
    const std::string& typed = words_.back();
    const std::string wanted = split_ ? typed.substr(typed.find('=') + 1) : typed;
    if (text.starts_with(wanted)) completion_.candidates.push_back({text, description});
  }

  void addSubcommands() {
    for (const CLI::App* command : at_->get_subcommands([](const CLI::App*) { return true; })) {
      add(command->get_name(), command->get_description());
    }
  }

  void addOptions() {
    for (const CLI::Option* option : at_->get_options()) {
      if (isHidden(*option)) continue;
      // Of several long names the first; the others are for old scripts.
      if (!option->get_lnames().empty()) {
        add("--" + option->get_lnames().front(), option->get_description());
      }
      if (words_.back() != "-") continue;
      for (const std::string& name : option->get_snames()) {
        add("-" + name, option->get_description());
      }
    }
  }

  void addPositional(std::size_t index) {
    const std::vector<const CLI::Option*> all = positionals(*at_);
    if (all.empty()) return;
    if (index >= all.size() && all.back()->get_items_expected_max() <= 1) return;
    addValues(*all[std::min(index, all.size() - 1)], "");
  }

  void addValues(const CLI::Option& option, const std::string& prefix) {
    const std::vector<std::string> fixed = valuesOf(option);
    for (const std::string& value : fixed) add(prefix + value);
    if (!fixed.empty()) return;
    const std::string what = option.get_positional()       ? option.get_single_name()
                             : option.get_lnames().empty() ? ""
                                                           : option.get_lnames().front();
    for (const auto& [name, kind] :
         {std::pair("POD", "pod"), std::pair("namespace", "namespace"),
          std::pair("system-namespace", "namespace"), std::pair("node", "node")}) {
      if (what != name) continue;
      for (const std::string& value : lookup_(kind, words_)) add(prefix + value);
      return;
    }
    for (const char* name :
         {"FILE", "kubeconfig", "state", "socket", "cgroup-root", "report", "series"}) {
      completion_.files |= what == name;
    }
  }

  const CLI::App* at_;
  std::vector<std::string> words_;
  const Lookup& lookup_;
  bool split_ = false;  // the word being typed was broken at "="
  Completion completion_;
};

// The value of a flag among the words; the last one counts.
std::string flagValue(const std::vector<std::string>& words,
                      const std::vector<std::string>& names) {
  std::string value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string& name : names) {
      if (words[i] == name && i + 2 < words.size()) value = words[i + 1];
      if (words[i].starts_with(name + "=")) value = words[i].substr(name.size() + 1);
    }
  }
  return value;
}

}  // namespace

std::vector<std::string> valuesOf(const CLI::Option& option) {
  // "{a,b}" in "TEXT:{a,b}"
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin);
  std::vector<std::string> values;
  if (begin == std::string::npos || end == std::string::npos) return values;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type.find(',', at), end);
    values.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return values;
}

const CLI::App* findCommand(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

Completion complete(const CLI::App& app, const std::vector<std::string>& words,
                    const Lookup& lookup) {
  return Completer(app, words, lookup).run();
}

std::string completionText(const Completion& completion) {
  std::string text;
  for (const Candidate& candidate : completion.candidates) {
    // A name is typed as it is, or not at all.
    if (view::printable(candidate.text) != candidate.text) continue;
    text += candidate.text;
    if (!candidate.description.empty()) text += "\t" + candidate.description;
    text += '\n';
  }
  return text + (completion.files ? ":0\n" : ":4\n");
}

std::vector<std::string> lookUp(const std::string& what, const std::vector<std::string>& words) {
  constexpr double kPatience = 2;  // seconds: a person waits for the key to take effect
  const ClusterFlags flags{.kubeconfig = flagValue(words, {"--kubeconfig"}),
                           .context = flagValue(words, {"--context"}),
                           .cluster = flagValue(words, {"--cluster"}),
                           .user = flagValue(words, {"--user"}),
                           .as = flagValue(words, {"--as"}),
                           .name_space = flagValue(words, {"-n", "--namespace"}),
                           .request_timeout = kPatience};
  std::vector<std::string> names;
  const auto connection = Connection::open(flags);
  if (!connection) return names;
  kube::Client& client = (*connection)->client();
  const auto take = [&](const auto& list, auto name) {
    if (!list) return;
    for (const auto& object : list->items) names.push_back(name(object->meta));
  };
  const auto plain = [](const kube::ObjectMeta& meta) { return meta.name.string(); };
  if (what == "namespace") take(client.list<kube::Namespace>(), plain);
  if (what == "node") take(client.list<kube::Node>(), plain);
  if (what == "pod") {
    // "shop/w": of that namespace, and written so.
    const std::size_t slash = words.back().find('/');
    if (slash == std::string::npos) {
      take(client.list<kube::Pod>({.name_space = (*connection)->defaultNamespace()}), plain);
    } else if (const auto target = cli::parseTarget(words.back().substr(0, slash) + "/x");
               target && target->name_space.empty()) {
      // "pod/w": as kubectl writes it. Of workloads nothing is offered.
      const std::string kind = words.back().substr(0, slash + 1);
      if (target->isPod()) {
        take(client.list<kube::Pod>({.name_space = (*connection)->defaultNamespace()}),
             [&](const kube::ObjectMeta& meta) { return kind + meta.name.string(); });
      }
    } else {
      take(client.list<kube::Pod>({.name_space = words.back().substr(0, slash)}),
           [](const kube::ObjectMeta& meta) { return kube::objectKey(meta); });
    }
  }
  return names;
}

void addCompletion(CLI::App& app, int& exit_code) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script for a shell");
  command->footer(kFooter);
  oneOf(command->add_option("SHELL", *shell, "bash, zsh or fish"), {"bash", "zsh", "fish"})
      ->required();
  command->callback([shell, &exit_code] {
    fmt::print("{}", *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
    exit_code = kDone;
  });
}

}  // namespace mbcas::app
