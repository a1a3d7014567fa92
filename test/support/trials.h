// How many cases a test tries. `make soak` (MBCAS_SOAK=1) has time for many. A sanitizer makes each
// ten times as slow and looks for other faults than wrong answers: a tenth of them goes through the
// same code.
#pragma once

#include <cstdlib>

namespace mbcas::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

inline bool soaking() {
  return std::getenv("MBCAS_SOAK") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

template <class Count = int>
Count trials(Count usual, Count soak) {
  if (soaking()) return soak;
  return kSanitized ? (usual + 9) / 10 : usual;
}

}  // namespace mbcas::test
