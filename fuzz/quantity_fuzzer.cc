// Any text either is refused with a message or reads as a value whose canonical text is the same
// value.
#include <cstdint>
#include <cstdlib>

#include "mbcas/base/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mbcas::Quantity;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto quantity = Quantity::parse(text);
  if (!quantity) return quantity.error().message().empty() ? std::abort(), 0 : 0;
  const auto again = Quantity::parse(quantity->toString());
  if (!again || *again != *quantity) std::abort();
  // Rounding is away from zero, so never towards less.
  const auto up = Quantity(quantity->millicores());
  if (*quantity > Quantity() && quantity->value() < (std::int64_t{1} << 40) && up < *quantity) {
    std::abort();
  }
  return 0;
}
