// Pods that are never touched.
#pragma once

#include <optional>
#include <string>

#include "mbcas/policy/bounds.h"

namespace mbcas::policy {

struct Apart {
  std::string why;
  // It is ours no longer: what was changed is to be restored. False where nothing can be done (any
  // more) or too little is known.
  bool let_go = true;
};
// Why the pod is left alone, whatever its containers are; nothing if it is not.
std::optional<Apart> leftAlone(const kube::Pod& pod, const NamespaceObjects& objects,
                               const Settings& settings);
// The same for one container of a pod that is not.
std::optional<std::string> leftAlone(const kube::Container& container);

// "true" or "false" in the annotation, or else the label, of that name.
std::optional<std::string_view> mark(const kube::ObjectMeta& meta, std::string_view key);

}  // namespace mbcas::policy
