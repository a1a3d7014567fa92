// What MBCAS changed on this host, on disk before it is changed, so that every limit can be put
// back: at the end, and after a crash by the process that opens the file next.
//
//   Result<Ledger> ledger = Ledger::open("/run/mbcas/host");   // fails while another holds it
//   ledger->record({path, cgroup, limit});                     // before the first write to it
//   ledger->restore(mounts);                                   // all of it, and forgets
//
// The file belongs below /run: after a reboot neither it nor the cgroups exist. A line is
// "limit CGROUP QUOTA PERIOD PATH" (microseconds; "max": no quota) or "made PATH" for a cgroup
// that MBCAS made and removes. A line cut short by a crash was never acted upon and is passed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"
#include "mbcas/kernel/file.h"
#include "mbcas/kernel/mounts.h"
#include "mbcas/kernel/parse.h"

namespace mbcas::host {

// A cgroup as it was before MBCAS came.
struct Original {
  std::string path;
  std::uint64_t cgroup = 0;  // the kernel's number of it
  kernel::CpuLimit limit;

  friend bool operator==(const Original&, const Original&) = default;
};

struct LedgerContent {
  std::vector<Original> limits;
  std::vector<std::string> made;

  friend bool operator==(const LedgerContent&, const LedgerContent&) = default;
};
LedgerContent parseLedger(std::string_view text);
std::string ledgerLine(const Original& original);

struct Restored {
  std::size_t limits = 0;             // put back
  std::size_t gone = 0;               // their cgroups ended meanwhile
  std::vector<std::string> failures;  // one line each; these stay in the ledger
};

class Ledger {
 public:
  // Makes the file and its directory if needed. What an earlier run left is in content().
  static Result<Ledger> open(const std::string& file);

  const LedgerContent& content() const { return content_; }

  // On disk when it returns. Of two entries for a cgroup the later one counts: its owner changed
  // the limit meanwhile.
  Result<void> record(const Original& original);
  Result<void> recordMade(const std::string& path);

  // Puts back every limit, removes the cgroups that were made (innermost first; processes that are
  // left in them end), and forgets what succeeded.
  Restored restore(const kernel::Mounts& mounts);

 private:
  Result<void> append(const std::string& line);

  std::string file_;
  kernel::Fd fd_;  // locked as long as it is open
  LedgerContent content_;
};

}  // namespace mbcas::host
