// The market's JSON form, of `mbcas solve` and the golden files.
//
//   {"capacity":4000,"objective":"bargaining","pods":[
//     {"id":"a","bid":250,"weight":500,"min":500,"max":2000,"guarantee":500}]}
//
//   {"mode":"congested","price":0.25,"allocated":4000,"unallocated":0,"pods":[
//     {"id":"a","cpu":1234,"bound":"none"}]}
//
// Objective is bargaining (default) or welfare; weight defaults to 1, bid to the weight, min and
// guarantee to 0, max to the capacity (or to min, if that is more). The price is null when there is
// none (overloaded) or it is infinite, which JSON cannot say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/market/solver.h"

namespace mbcas::market {

// A hundred thousand pods take a third of it.
inline constexpr std::size_t kLongestJson = std::size_t{32} << 20;

// A problem that validate() accepts, or an error that names the field. The input may come from
// anyone, so it is bounded in length, depth and number of pods, and every field is checked before
// it is stored.
Result<Problem> parseProblem(std::string_view json);

std::string toJson(const Problem& problem);
std::string toJson(const Problem& problem, const Clearing& clearing);

std::string_view name(Objective objective);
std::string_view name(Mode mode);
std::string_view name(Bound bound);

}  // namespace mbcas::market
