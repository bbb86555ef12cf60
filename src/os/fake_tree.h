// FakeTree: a throw-away directory tree that stands in for /proc, /sys or a cgroup mount in tests.
//
// Hand root() to whatever takes a root as a parameter. Removed with the object. For tests only; a
// failure to write throws, since a test without its tree proves nothing.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/types.h>

#include "base/testing/temporary_directory.h"

namespace assay::os {

class FakeTree {
 public:
  const std::string& root() const { return directory_.path(); }

  void write(const std::string& path, const std::string& content) {
    std::filesystem::path full = make_parent(path);
    std::ofstream out(full, std::ios::binary);
    out << content;
    if (!out.flush()) throw std::runtime_error("cannot write " + full.string());
  }
  void link(const std::string& path, const std::string& target) {
    std::filesystem::path full = make_parent(path);
    std::filesystem::remove(full);
    std::filesystem::create_symlink(target, full);
  }
  void directory(const std::string& path) {
    std::filesystem::create_directories(directory_ / path);
  }
  void remove(const std::string& path) { std::filesystem::remove_all(directory_ / path); }

 private:
  std::filesystem::path make_parent(const std::string& path) {
    std::filesystem::path full = directory_ / path;
    std::filesystem::create_directories(full.parent_path());
    return full;
  }
  TemporaryDirectory directory_;
};

// One process of a fake /proc, with what is asked of processes most.
struct FakeProcess {
  pid_t pid = 0;
  pid_t parent = 1;
  std::string comm = {};
  std::string exe = {};
  std::vector<std::string> cmdline = {};
  std::string cgroup = "0::/\n";
  uid_t uid = 0;
  uint64_t start_ticks = 0;
  std::vector<std::pair<pid_t, std::string>> threads = {};  // besides the main one: tid and name
};

inline std::string fake_stat_line(pid_t tid, const std::string& comm, pid_t parent, size_t threads,
                                  uint64_t start_ticks) {
  return fmt::format(
      "{} ({}) S {} {} {} 0 -1 4194304 11 0 2 0 30 40 0 0 20 0 {} 0 {} 1000 200 0 0 0 0\n", tid,
      comm, parent, tid, tid, threads, start_ticks);
}

inline void add_process(FakeTree& proc, const FakeProcess& process) {
  std::string home = std::to_string(process.pid) + "/";
  std::string stat = fake_stat_line(process.pid, process.comm, process.parent,
                                    process.threads.size() + 1, process.start_ticks);
  std::string cmdline;
  for (const std::string& argument : process.cmdline) cmdline += argument + '\0';
  proc.write(home + "stat", stat);
  proc.write(home + "comm", process.comm + "\n");
  proc.write(home + "cmdline", cmdline);
  proc.write(home + "cgroup", process.cgroup);
  proc.write(home + "status",
             fmt::format("Name:\t{}\nTgid:\t{}\nPid:\t{}\nPPid:\t{}\nUid:\t{}\t{}\t{}\t{}\n",
                         process.comm, process.pid, process.pid, process.parent, process.uid,
                         process.uid, process.uid, process.uid));
  if (!process.exe.empty()) proc.link(home + "exe", process.exe);
  proc.directory(home + "fd");
  auto threads = process.threads;
  threads.emplace_back(process.pid, process.comm);
  for (const auto& [tid, name] : threads) {
    std::string task = fmt::format("{}task/{}/", home, tid);
    proc.write(task + "comm", name + "\n");
    proc.write(task + "stat",
               fake_stat_line(tid, name, process.parent, threads.size(), process.start_ticks));
    proc.write(task + "schedstat", "1000 200 3\n");
  }
}

}  // namespace assay::os
