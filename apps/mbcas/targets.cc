#include "apps/mbcas/targets.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/mbcas/cluster_flags.h"
#include "mbcas/cli/findings.h"
#include "mbcas/cli/words.h"

namespace mbcas::app {

std::string Targets::announcement() const {
  return fmt::format("{} is {}: {}", workload, cli::countText(pods.size(), "pod"),
                     cli::namesText(pods));
}

Result<Targets> findTargets(kube::Client& client, const cli::Target& target,
                            const std::string& default_namespace) {
  Targets targets{.name_space = target.name_space.empty() ? default_namespace : target.name_space};
  if (target.isPod()) {
    targets.pods.push_back(target.name);
    return targets;
  }
  targets.workload = target.plural + "/" + target.name;
  const auto text =
      client.perform({.path = fmt::format("/apis/apps/v1/namespaces/{}/{}/{}",
                                          kube::percentEncode(targets.name_space), target.plural,
                                          kube::percentEncode(target.name))});
  if (!text) {
    return failure(fmt::format("{}{}", explained(text.error()),
                               text.error().notFound()
                                   ? fmt::format("; kubectl -n {} get {} lists what there is",
                                                 targets.name_space, target.plural)
                                   : ""));
  }
  const Result<std::string> selector = cli::podSelectorOf(*text);
  if (!selector) return failure(Error(selector.error()).within(targets.workload));
  const auto pods =
      client.list<kube::Pod>({.name_space = targets.name_space, .label_selector = *selector});
  if (!pods) return failure(explained(pods.error()));
  for (const auto& pod : pods->items) {
    if (!pod->terminal()) targets.pods.push_back(pod->meta.name.string());
  }
  if (targets.pods.empty()) {
    return failure(fmt::format("{} has no pods that run; kubectl -n {} describe {} tells why",
                               targets.workload, targets.name_space, targets.workload));
  }
  std::ranges::sort(targets.pods);
  return targets;
}

std::string notATarget(const std::string& words) {
  return fmt::format("{}: not {}", words, kTargetHelp);
}

}  // namespace mbcas::app
