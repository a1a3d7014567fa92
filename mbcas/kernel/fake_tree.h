// A cgroup tree made of ordinary files, for tests and for replaying recordings: in one expression,
// or step by step.
//
//   FakeTree tree({{"cgroup.controllers", "cpu pids\n"},
//                  {"kubepods/pod1/cpu.stat", "usage_usec 5\n"}});
//   tree.write("kubepods/pod1/cpu.stat", "usage_usec 9\n");
//   detectMounts(tree.root());
//
// Every directory gets a cgroup.procs, as in a real tree. The tree is removed with the object.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

namespace mbcas::kernel {

class FakeTree {
 public:
  FakeTree(std::initializer_list<std::pair<std::string, std::string>> files = {}) {
    // In memory where possible, because tests rewrite the tree at every simulated second.
    std::error_code ignored;
    const std::filesystem::path memory = "/dev/shm";
    std::string pattern =
        (std::filesystem::is_directory(memory, ignored) ? memory
                                                        : std::filesystem::temp_directory_path()) /
        "mbcas-tree-XXXXXX";
    const char* const made = ::mkdtemp(pattern.data());
    if (made == nullptr) return;
    root_ = made;
    for (const auto& [path, content] : files) write(path, content);
  }
  ~FakeTree() {
    std::error_code ignored;
    if (!root_.empty()) std::filesystem::remove_all(root_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }  // empty: no place was found

  // Writes in place, so an open descriptor sees the new content, as with the kernel's files.
  void write(const std::string& path, const std::string& content) {
    makeCgroup(std::filesystem::path(path).parent_path().string());
    std::ofstream(root_ + "/" + path, std::ios::trunc) << content;
  }
  void makeCgroup(const std::string& path) {
    std::filesystem::path directory = root_;
    for (const auto& part : std::filesystem::path(path)) {
      directory /= part;
      std::filesystem::create_directory(directory);
      std::ofstream(directory / "cgroup.procs", std::ios::app);
    }
  }
  void remove(const std::string& path) { std::filesystem::remove_all(root_ + "/" + path); }

 private:
  std::string root_;
};

}  // namespace mbcas::kernel
