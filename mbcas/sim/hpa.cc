#include "mbcas/sim/hpa.h"

#include <algorithm>
#include <cmath>

namespace mbcas::sim {
namespace {

// Whole percents, cut off, as Kubernetes counts them.
struct Sum {
  std::int64_t usage = 0;
  std::int64_t requests = 0;
  int pods = 0;

  void add(Millicores used, Millicores request) {
    usage += used.count();
    requests += request.count();
    ++pods;
  }
  double ratio(int target) const {
    if (requests == 0) return 0;
    const std::int64_t percent = usage * 100 / requests;
    return static_cast<double>(percent) / target;
  }
};

}  // namespace

std::optional<int> hpaWants(std::span<const HpaPod> pods, int current,
                            const HpaSettings& settings) {
  const auto close = [&](double ratio) {
    return ratio >= 1 - settings.tolerance && ratio <= 1 + settings.tolerance;
  };
  Sum known;
  bool missing = false;
  bool unready = false;
  for (const HpaPod& pod : pods) {
    if (!pod.ready) {
      unready = true;
    } else if (!pod.usage) {
      missing = true;
    } else {
      known.add(*pod.usage, pod.request);
    }
  }
  if (known.pods == 0) return std::nullopt;
  const double ratio = known.ratio(settings.target);
  const bool upwards = unready && ratio > 1;
  if (!upwards && !missing) {
    if (close(ratio)) return current;
    return static_cast<int>(std::ceil(ratio * known.pods));
  }
  // Whatever is not known speaks against a change: it uses all it requested on the way down, and
  // nothing on the way up.
  Sum all = known;
  for (const HpaPod& pod : pods) {
    if (!pod.ready) {
      if (upwards) all.add(Millicores(0), pod.request);
    } else if (!pod.usage) {
      const std::int64_t percent = ratio < 1 ? std::max(100, settings.target) : 0;
      all.add(Millicores(pod.request.count() * percent / 100), pod.request);
    }
  }
  const double careful = all.ratio(settings.target);
  if (close(careful) || (ratio < 1 && careful > 1) || (ratio > 1 && careful < 1)) return current;
  const int wants = static_cast<int>(std::ceil(careful * all.pods));
  if ((careful < 1 && wants > current) || (careful > 1 && wants < current)) return current;
  return wants;
}

int Hpa::sync(MonotonicTime now, std::span<const HpaPod> pods, int current) {
  const std::optional<int> wants = hpaWants(pods, current, settings_);
  if (!wants) return current;
  std::erase_if(wanted_,
                [&](const Wanted& old) { return now - old.at > settings_.downscale_window; });
  wanted_.push_back({now, *wants});
  const int most_wanted = std::ranges::max(wanted_, {}, &Wanted::replicas).replicas;
  // Up at most to twice as many, or to four.
  const int replicas = std::min(most_wanted, std::max(2 * current, 4));
  return std::clamp(replicas, settings_.least, settings_.most);
}

}  // namespace mbcas::sim
