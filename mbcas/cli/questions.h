// What a check-up makes of the answers of an API server.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/kube/client.h"

namespace mbcas::cli {

// Whether there is an answer. If not, `notes` gets a line about it. A server that does not answer
// at all is `lost`, and nothing more should be asked of it.
template <class T>
bool take(const kube::ApiResult<T>& result, std::string_view what, std::optional<std::string>& lost,
          std::vector<std::string>& notes) {
  if (result) return true;
  if (!result.error().answered()) {
    lost = result.error().describe();
  } else {
    notes.push_back(fmt::format("{} cannot be read: {}", what, result.error().describe()));
  }
  return false;
}

}  // namespace mbcas::cli
