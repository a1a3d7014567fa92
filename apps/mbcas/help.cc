// mbcas help: the commands again, and what concerns several of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "apps/mbcas/command_line.h"
#include "apps/mbcas/commands.h"
#include "apps/mbcas/completion.h"
#include "apps/mbcas/help_format.h"
#include "apps/mbcas/terminal.h"

namespace mbcas::app {
namespace {

struct Topic {
  const char* name;
  const char* about;
  const char* text;
};

constexpr Topic kTopics[] = {
    {"quickstart", "From nothing to a cluster whose limits follow the load",
     R"(See it work, without a cluster:

  mbcas demo                         # four workloads; static limits, the market, and a hog

On a machine of your own, without Kubernetes:

  mbcas doctor --host                # does the kernel offer what is needed?
  mbcas run pods.yaml --dry-run      # `mbcas run --help` shows the file
  mbcas run pods.yaml                # and in another terminal:
  mbcas top --host
  mbcas explain --host web

On a cluster, carefully:

  mbcas doctor --pre                 # before an installation: would it work here?
  kubectl apply -k overlays/recommend-only
  mbcas doctor                       # what is missing, and how to fix it
  mbcas report --for 10m             # what MBCAS sees, and what it would change
  mbcas explain shop/POD             # why
  mbcas mode raise-only -n shop      # let it act in one namespace,
  mbcas mode full                    # or everywhere

The way back: mbcas help restoring.
)"},
    {"columns", "What the columns of top, pods and inspect mean",
     R"(NEED       limit at which the pod would have all that it can use now (from its agent; "needs" in
           `mbcas explain`), or what it wanted at its last decision
LIMIT      in force: by the kernel where an agent answers, else as the kubelet reports it. 500m+
           in `mbcas pods`: other containers have none
APPLIED    last limit of MBCAS that was seen actuated
MS/S       throttled: thread time that limits held back, in milliseconds per second. It can
           exceed 1000: several threads can wait
PRESS      pressure: share of time in which some thread of the pod waited for a CPU, because of
           its limit or of its neighbours
PRICE      of CPU on the pod's node: 0 while every managed pod has all that it could use; else what
           one more millicore is worth, in units of weight. "overloaded" (profile classic): not
           even the floors fit
PHASE      Pending: work in progress. Applied: in force. Failed: tried again, later each time.
           "-": no PodAllocation, so it is left alone or not seen yet; `mbcas explain` says
USED       CPU in use, over the last second
DECLARED   limit that the pod's owner wrote
DESIRED    limit that its agent decided on
AWARD      CPU that the market gives the pod: the kernel's division, with the weight of each pod
           times the factor of its priority
WHY        the reason for it, or why the pod is left alone
WEIGHT     in `inspect machine`: the kernel's weight of a cgroup among its siblings, 1024 by default
CAP, USE   in `inspect machine`: quota of a cgroup, and CPU in use there and below
-          not known: the agent does not answer, or there is no such thing
)"},
    {"modes", "How far MBCAS may go, for a cluster or a namespace",
     R"(off          every pod has what it declared
recommend    the same, and status says what would be set
raise-only   limits are raised, never set below what was declared
full         the default: also lower, for a more important pod that is short of CPU, or where a
             quota is short

What holds where:             mbcas mode
For the cluster:              mbcas mode recommend    (key `mode` of ConfigMap mbcas-system/mbcas)
For a namespace, over it:     mbcas mode full -n shop    (label mbcas.io/mode)

A pod, or a namespace, opts out for good by label or annotation:

  kubectl annotate pod -n shop web-1 mbcas.io/managed=false

`mbcas pause` means off everywhere at once, whatever labels say. `mbcas resume` ends the pause.
)"},
    {"restoring", "How to get back what pods declared",
     R"(One pod:            mbcas restore shop/web-1
What it would be:   mbcas restore --all --dry-run
Everything, now:    mbcas pause        (mbcas resume goes on)
For good:           mbcas restore --all, then kubectl delete -k config --ignore-not-found
                    (helm uninstall restores by itself)
A machine:          `mbcas run` puts every limit back when it ends; after a crash
                    mbcas restore --host, and the next `mbcas run` does it too

On a cluster what a pod declared is recorded in the status of its PodAllocation, and in the pod's
annotation mbcas.io/original-resources, so that the way back does not depend on anything that runs.
A pod that is restored and still managed is changed again. To keep it as it is, opt it out first
(mbcas help modes).
)"},
    {"annotations", "What can be written on pods and namespaces", R"(On a pod (annotations):

  mbcas.io/min-cpu=250m              where limits are trimmed to needs (reclaim: always, profile
                                     classic) its limit is never below
  mbcas.io/max-cpu=2                 its limit is never above
  mbcas.io/manage-guaranteed=true    a Guaranteed pod too: request and limit move together
  mbcas.io/managed=false             left alone (also as a label, also on the namespace)

On a namespace (label):

  mbcas.io/mode=recommend            mbcas help modes
)"},
    {"exit-codes", "What commands end with, for scripts", R"(0   done
1   failed: the cluster does not answer, a pod does not exist, a resize was refused; of
    `mbcas doctor`: there are problems
2   the command or its input is wrong

Results go to standard output. Errors go to standard error, one line each, with what to do about
them. -o json prints one JSON object, -o yaml the same as YAML, and -o name only names. Colours and
live screens appear only on a terminal. NO_COLOR turns colours off.
)"},
};

const Topic* findTopic(const std::string& name) {
  for (const Topic& topic : kTopics) {
    if (topic.name == name) return &topic;
  }
  return nullptr;
}

std::string topicList() {
  std::string text = "Topics:\n";
  for (const Topic& topic : kTopics) text += fmt::format("  {:<28}{}\n", topic.name, topic.about);
  return text;
}

int helpCommand(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) {
    // App::help() would be about the command that was given: this one.
    fmt::print("{}\n{}",
               app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal),
               topicList());
    return kDone;
  }
  if (const Topic* const topic = findTopic(words.front()); topic != nullptr && words.size() == 1) {
    fmt::print("{}", isTerminal() ? topicText(topic->text, terminalSize().width) : topic->text);
    return kDone;
  }
  const CLI::App* command = &app;
  std::string parents;
  for (const std::string& word : words) {
    parents += (parents.empty() ? "" : " ") + command->get_name();
    command = findCommand(*command, word);
    if (command == nullptr) {
      std::vector<std::string> candidates;
      for (const Topic& topic : kTopics) candidates.emplace_back(topic.name);
      for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
        candidates.push_back(each->get_name());
      }
      const std::string near = words.size() == 1 ? nearest(word, candidates) : "";
      complain("mbcas help",
               fmt::format("{}: neither a command nor a topic; {}mbcas help lists both",
                           fmt::join(words, " "),
                           near.empty() ? "" : fmt::format("did you mean {}? ", near)));
      return kUsage;
    }
  }
  fmt::print("{}", command->help(parents));
  return kDone;
}

}  // namespace

void addHelp(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Help for a command, or about a topic");
  command->footer(topicList() + "\nExample: mbcas help columns");
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) names.emplace_back(topic.name);
  command->add_option("TOPIC", *words, "A topic, or a command")
      ->type_name(fmt::format("{{{}}}", fmt::join(names, ",")));
  command->callback([&app, words, &exit_code] { exit_code = helpCommand(app, *words); });
}

}  // namespace mbcas::app
