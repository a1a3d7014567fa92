// Times as people write them in flags.
#pragma once

#include <charconv>
#include <chrono>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/policy/settings.h"

namespace mbcas::app {

// Of a time as 500ms, 30s, 1m30s or 2h. "30" is that many seconds, in every command.
inline Result<double> secondsOf(std::string_view text) {
  double seconds = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (error == std::errc{} && end == text.data() + text.size()) return seconds;
  const Result<Nanos> duration = policy::parseDuration(text);
  if (!duration) return failure(duration.error());
  return std::chrono::duration<double>(*duration).count();
}

}  // namespace mbcas::app
