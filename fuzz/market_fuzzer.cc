// The solver against the reference, on problems made from the fuzzer's bytes. A bug is any
// difference in whole millicores, bounds or mode; a trap tells the fuzzer.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "mbcas/market/reference/reference.h"
#include "mbcas/market/solver.h"

namespace {

using namespace mbcas::market;
using mbcas::Millicores;

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  template <class T>
  T take() {
    T value{};
    const std::size_t size = left_ < sizeof(T) ? left_ : sizeof(T);
    std::memcpy(&value, data_, size);
    data_ += size;
    left_ -= size;
    return value;
  }
  // Small amounts as often as large ones.
  Millicores amount() {
    const auto bits = take<std::uint8_t>() % 41;
    return Millicores(static_cast<std::int64_t>(take<std::uint64_t>() >> (63 - bits) >> 1));
  }
  double bid() {
    switch (take<std::uint8_t>() % 5) {
      case 0:
        return 0;
      case 1:
        return take<std::uint8_t>();
      case 2:
        return 0.1 * take<std::uint16_t>();
      case 3:
        return std::ldexp(1.0 + take<std::uint16_t>() * 0x1p-52, take<std::uint8_t>() % 128 - 64);
      default: {
        const double any = std::abs(take<double>());
        return any < kLargestBid ? any : 1.0;  // NaN too
      }
    }
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Problem problem;
  const auto shape = bytes.take<std::uint8_t>();
  problem.objective = shape & 1 ? Objective::kWelfare : Objective::kBargaining;
  problem.capacity = bytes.amount();
  Pod pod;
  for (int i = 0; i < 200 && !bytes.empty(); ++i) {
    // Repeats of the last pod make ties and equal breakpoints.
    if (i == 0 || bytes.take<std::uint8_t>() % 4 != 0) {
      pod.bid = bytes.bid();
      pod.weight = bytes.bid();
      pod.min = bytes.amount();
      pod.max = pod.min + bytes.amount();
      pod.guarantee = std::min(pod.min, bytes.amount());
    }
    pod.id = std::to_string(i * 7919 % 200);
    problem.pods.push_back(pod);
  }
  if (shape & 2) {  // a capacity that matters
    std::int64_t min_sum = 0;
    for (const Pod& each : problem.pods) min_sum += each.min.count();
    problem.capacity = std::min(kLargestAmount, problem.capacity + Millicores(min_sum));
  }

  Solver solver;
  Clearing clearing;
  if (!solver.solve(problem, clearing)) std::abort();
  const Clearing expected = reference::clear(problem);
  if (clearing.mode != expected.mode || clearing.pods != expected.pods ||
      clearing.allocated != expected.allocated || clearing.unallocated != expected.unallocated) {
    std::abort();
  }
  const double price = clearing.price.value_or(-1);
  const double expected_price = expected.price.value_or(-1);
  if (price != expected_price && std::abs(price - expected_price) > 1e-14 * expected_price) {
    std::abort();
  }
  return 0;
}
