// Notices that subdirectories of some directories came or went, without listing them again.
//
// inotify reports changes at no cost per directory. It can be unavailable (limits on instances and
// watches are per user and shared) and does not reach across every kind of mount, so the link count
// of the directories is a second witness: in a cgroup file system it is 2 + the number of
// subdirectories. (Their modification time is none: it never changes.) Counts are compared at every
// poll where inotify could not be had, and on request otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "mbcas/kernel/file.h"

namespace mbcas::kernel {

class DirectoryWatch {
 public:
  enum class Method { kInotify, kLinkCount };

  explicit DirectoryWatch(Method preferred = Method::kInotify);

  // Watches a directory from now on. List the directory after this call, not before. Call again for
  // a directory that was removed and made again. `key` is what changed() reports.
  void add(const std::string& key, const std::string& directory);
  void remove(const std::string& key);

  // Fills `changed` with the keys of directories that changed since the last call; false if that
  // is not known (events were lost) and everything must be listed again. `compare_counts` asks
  // for the second witness too.
  bool poll(std::unordered_set<std::string>& changed, bool compare_counts);

  // Changes that only the link counts showed: events do not reach this process.
  std::uint64_t missedByEvents() const { return missed_by_events_; }

 private:
  struct Entry {
    std::string directory;
    std::uint64_t links = 0;
    int watch = -1;
  };

  bool countChanged(Entry& entry);

  Fd inotify_;
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<int, std::string> keys_;  // by inotify watch
  std::size_t without_events_ = 0;             // entries that inotify does not watch
  std::uint64_t missed_by_events_ = 0;
};

}  // namespace mbcas::kernel
