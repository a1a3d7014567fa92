#include "mbcas/kernel/watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace mbcas::kernel {
namespace {

// 0 if it is gone.
std::uint64_t linksOf(const std::string& directory) {
  struct ::stat status{};
  if (::stat(directory.c_str(), &status) != 0) return 0;
  return status.st_nlink;
}

}  // namespace

DirectoryWatch::DirectoryWatch(Method preferred) {
  if (preferred == Method::kInotify) inotify_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
}

void DirectoryWatch::add(const std::string& key, const std::string& directory) {
  remove(key);
  Entry entry;
  if (inotify_) {
    entry.watch =
        ::inotify_add_watch(inotify_.get(), directory.c_str(),
                            IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
    if (entry.watch >= 0) keys_[entry.watch] = key;
  }
  entry.directory = directory;
  entry.links = linksOf(entry.directory);
  if (entry.watch < 0) ++without_events_;
  entries_[key] = std::move(entry);
}

void DirectoryWatch::remove(const std::string& key) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return;
  if (entry->second.watch >= 0) {
    // Fails without harm where the kernel has removed the watch with the directory.
    ::inotify_rm_watch(inotify_.get(), entry->second.watch);
    keys_.erase(entry->second.watch);
  } else {
    --without_events_;
  }
  entries_.erase(entry);
}

bool DirectoryWatch::poll(std::unordered_set<std::string>& changed, bool compare_counts) {
  changed.clear();
  bool complete = true;
  alignas(inotify_event) char buffer[16 * 1024];
  while (inotify_) {
    const ssize_t length = ::read(inotify_.get(), buffer, sizeof buffer);
    if (length <= 0) break;
    for (ssize_t at = 0; at < length;) {
      inotify_event event{};
      std::memcpy(&event, buffer + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) complete = false;
      const auto key = keys_.find(event.wd);
      if (key != keys_.end() && (event.mask & IN_ISDIR) != 0) changed.insert(key->second);
    }
  }
  for (const std::string& key : changed) countChanged(entries_.at(key));
  if (compare_counts || without_events_ > 0) {
    for (auto& [key, entry] : entries_) {
      if ((!compare_counts && entry.watch >= 0) || !countChanged(entry)) continue;
      if (changed.insert(key).second && entry.watch >= 0) ++missed_by_events_;
    }
  }
  return complete;
}

bool DirectoryWatch::countChanged(Entry& entry) {
  const std::uint64_t links = linksOf(entry.directory);
  return std::exchange(entry.links, links) != links;
}

}  // namespace mbcas::kernel
