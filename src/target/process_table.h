// ProcessTable: every process of the machine at one moment, as far as matching a target needs it.
//
// Reads /proc once and answers from memory; processes that end meanwhile are left out. Parent links
// of a live /proc can be inconsistent, so walks are bounded and do not assume a tree.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "os/process/procfs.h"

namespace assay::target {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string comm;
  std::string exe;             // without " (deleted)"; empty when it has none or may not be read
  bool exe_deleted = false;    // the file was removed or replaced after the start
  bool exe_forbidden = false;  // another user's process
  char state = '?';
  uint64_t start_ticks = 0;

  bool has_program() const {
    return !exe.empty() || exe_forbidden;
  }  // not a kernel thread, no zombie
};

class ProcessTable {
 public:
  static ProcessTable read(const os::ProcFs& proc);

  const std::vector<ProcessEntry>& all() const { return entries_; }  // by pid
  const ProcessEntry* find(pid_t pid) const;
  std::vector<pid_t> ancestors(pid_t pid) const;  // parent first
  // Without the process itself, and without those in `left_out` and their descendants.
  std::vector<pid_t> descendants(pid_t pid, const std::set<pid_t>& left_out = {}) const;

 private:
  std::vector<ProcessEntry> entries_;
};

}  // namespace assay::target
