// Pods that are never touched.
#pragma once

#include <optional>
#include <string>

#include "mbcas/policy/bounds.h"

namespace mbcas::policy {

struct Apart {
  std::string why;
  // The pod is no longer managed: what was changed is to be restored. False where nothing can be
  // done (any more) or too little is known.
  bool let_go = true;
  std::string remedy{};  // what its owner could do to have it managed; empty: nothing
};
// Why the pod is left alone, as far as the pod itself shows; nothing if it is managed.
std::optional<Apart> leftAlone(const kube::Pod& pod, const Settings& settings);
// The same, and what the namespace of the pod says, whatever its containers are.
std::optional<Apart> leftAlone(const kube::Pod& pod, const NamespaceObjects& objects,
                               const Settings& settings);
// Why one container of a managed pod is left alone.
std::optional<Apart> leftAlone(const kube::Container& container);

// "true" or "false" in the annotation, or else the label, of that name.
std::optional<std::string_view> mark(const kube::ObjectMeta& meta, std::string_view key);

}  // namespace mbcas::policy
