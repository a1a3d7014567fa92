// Mutexes whose use clang checks: -Wthread-safety finds a field that is touched without its mutex.
//
//   class Counter {
//    public:
//     void add() {
//       const MutexLock lock(mutex_);
//       ++count_;
//     }
//
//    private:
//     Mutex mutex_;
//     int count_ MBCAS_GUARDED_BY(mutex_) = 0;
//   };
//
// A function that is called with the mutex locked says so by MBCAS_REQUIRES(mutex_). So does the
// condition of a wait:
//
//   changed_.wait(lock.native(), [this] MBCAS_REQUIRES(mutex_) { return count_ > 0; });
//
// GCC ignores the annotations. The fields of a class can be guarded, but not the variables of a
// function.
#pragma once

#include <mutex>
#include <shared_mutex>

#ifdef __clang__
#define MBCAS_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define MBCAS_THREAD_SAFETY(attribute)
#endif
#define MBCAS_GUARDED_BY(mutex) MBCAS_THREAD_SAFETY(guarded_by(mutex))
#define MBCAS_REQUIRES(mutex) MBCAS_THREAD_SAFETY(requires_capability(mutex))

namespace mbcas {

class MBCAS_THREAD_SAFETY(capability("mutex")) Mutex {
 private:
  friend class MutexLock;
  std::mutex mutex_;
};

class MBCAS_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MBCAS_THREAD_SAFETY(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() MBCAS_THREAD_SAFETY(release_capability()) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() MBCAS_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }
  void unlock() MBCAS_THREAD_SAFETY(release_capability()) { lock_.unlock(); }
  // For the wait of a condition variable, which unlocks the mutex meanwhile.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Many readers, or one writer.
class MBCAS_THREAD_SAFETY(capability("shared_mutex")) SharedMutex {
 private:
  friend class ReaderLock;
  friend class WriterLock;
  std::shared_mutex mutex_;
};

class MBCAS_THREAD_SAFETY(scoped_lockable) WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) MBCAS_THREAD_SAFETY(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~WriterLock() MBCAS_THREAD_SAFETY(release_capability()) {}
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  std::unique_lock<std::shared_mutex> lock_;
};

class MBCAS_THREAD_SAFETY(scoped_lockable) ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) MBCAS_THREAD_SAFETY(acquire_shared_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~ReaderLock() MBCAS_THREAD_SAFETY(release_generic_capability()) {}
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

}  // namespace mbcas
