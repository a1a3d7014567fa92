// The state file of host mode: any bytes are read, and what was understood reads back the same.
#include <cstdint>
#include <cstdlib>

#include "mbcas/host/ledger.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mbcas::host;
  const LedgerContent content =
      parseLedger(std::string_view(reinterpret_cast<const char*>(data), size));
  std::string text;
  for (const Original& original : content.limits) text += ledgerLine(original);
  for (const std::string& path : content.made) text += "made " + path + "\n";
  if (parseLedger(text) != content) std::abort();
  return 0;
}
