#include <cstdio>

#include "mbcas/market/explain.h"
#include "mbcas/market/json.h"
#include "mbcas/market/solver.h"

int main() {
  const auto problem = mbcas::market::parseProblem(
      R"({"capacity":1000,"pods":[{"id":"a","bid":60,"min":100},{"id":"b","bid":40,"min":100}]})");
  if (!problem) return 1;
  const auto clearing = mbcas::market::clear(*problem);
  if (!clearing) return 1;
  std::puts(toJson(*problem, *clearing).c_str());
  std::puts(explain(*problem, *clearing, 0).c_str());
  return clearing->pods[0].cpu == mbcas::Millicores(580) ? 0 : 1;
}
