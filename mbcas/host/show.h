// A host's market as a picture, and its changes as lines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mbcas/host/plane.h"
#include "mbcas/view/screen.h"

namespace mbcas::host {

// Keeps what a picture shows of the past.
class Show {
 public:
  // Call once per tick. Title and subtitle are the caller's.
  view::NodeScreen screen(const View& view);

 private:
  std::map<std::string, std::vector<double>> throttling_;
  std::vector<std::string> notes_;
};

// "web: 500m -> 750m: uses 600m ..."
// Whether nothing can be said of it yet, because it has only just been seen.
bool isNew(const PodView& pod);
// Why its limit is what it is, in a sentence.
std::string reasonOf(const PodView& pod);
std::string changeLine(const PodView& pod);
// The same as an object: {"pod":"web","from":500,"to":750,"reason":"..."}.
std::string changeJson(const PodView& pod, const std::string& time);

}  // namespace mbcas::host
