// How the daemons speak: a JSON object a line.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "mbcas/base/clock.h"
#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"

namespace mbcas {

// What happens, to standard error. Thread-safe.
class Log {
 public:
  explicit Log(bool quiet) : quiet_(quiet) {}
  void info(const std::string& message) {
    if (!quiet_) write("info", message);
  }
  void error(const std::string& message) { write("error", message); }

 private:
  void write(std::string_view level, const std::string& message) {
    std::string line;
    JsonWriter(line)
        .beginObject()
        .key("time")
        .value(formatRfc3339(SystemClock().wall(), TimePrecision::kMicros))
        .key("level")
        .value(level)
        .key("msg")
        .value(message)
        .endObject();
    const std::lock_guard lock(mutex_);
    fmt::print(stderr, "{}\n", line);
  }
  const bool quiet_;
  std::mutex mutex_;
};

// Appends lines to a file, or to standard output ("-"). Thread-safe.
class LineFile {
 public:
  explicit LineFile(const std::string& path)
      : file_(path == "-" ? stdout : std::fopen(path.c_str(), "ae")) {}
  ~LineFile() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  bool open() const { return file_ != nullptr; }
  void write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    fmt::print(file_, "{}\n", line);
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
  std::mutex mutex_;
};

}  // namespace mbcas
