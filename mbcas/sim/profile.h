// How a load changes with time: a factor of the workload's own level.
#pragma once

#include <vector>

#include "mbcas/base/units.h"

namespace mbcas::sim {

struct Profile {
  enum class Shape {
    kConstant,  // 1 all the time
    kSteps,     // the value of the last point passed; before the first, the first's
    kLinear,    // between points in a straight line
    kDiurnal,   // low + (high - low) * (1 - cos) / 2 over `period`, starting low
  };
  struct Point {
    Nanos at{0};
    double factor = 1;

    friend bool operator==(const Point&, const Point&) = default;
  };

  Shape shape = Shape::kConstant;
  std::vector<Point> points{};  // ascending in time; of steps and linear
  double low = 0;               // of diurnal
  double high = 1;
  Nanos period{0};

  double at(Nanos time) const;
  double highest() const;
  bool constant() const { return shape == Shape::kConstant; }
  // When the factor may next differ from what it is at `time`: the next step, or soon.
  Nanos nextChange(Nanos time) const;

  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace mbcas::sim
