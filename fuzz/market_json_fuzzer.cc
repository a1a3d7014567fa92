// Anybody's bytes as a problem: refused in one line, or valid, solvable, and read back the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "mbcas/market/explain.h"
#include "mbcas/market/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas::market;
  const auto problem = parseProblem({reinterpret_cast<const char*>(data), size});
  if (!problem) {
    if (problem.error().message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto clearing = clear(*problem);
  if (!clearing) std::abort();
  for (std::size_t i = 0; i < problem->pods.size(); ++i) {
    if (explain(*problem, *clearing, i).empty()) std::abort();
  }
  if (toJson(*problem, *clearing).empty()) std::abort();
  if (parseProblem(toJson(*problem)) != problem) std::abort();
  return 0;
}
