// Kinship: whether a process that a target names is of the target, by what the kernel says.
//
// Targets tell of their children in memory that they may write to. Nothing of it is believed: a
// process is followed only if /proc shows that it descends from a process that was asked for (or
// has that one's memory mapped, which only its descendants and those it trusts have), and that it
// may do no more than that one: the same user, no further capabilities, the same user, process and
// mount namespaces. In: process ids and /proc; out: facts by which the same process is known again.
// Threads: safe everywhere. Failures: Errors that say what differs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "os/process/procfs.h"

namespace assay::capture {

struct ProcessFacts {
  pid_t pid = 0;
  uint64_t start_ticks = 0;      // with the pid, it names one process for ever
  std::array<uid_t, 3> users{};  // real, effective, saved
  uint64_t capabilities = 0;     // permitted
  std::array<std::string, 3> namespaces;
  uint64_t program_device = 0, program_inode = 0;  // 0: not to be seen

  bool same_program(const ProcessFacts& other) const {
    return program_inode != 0 && program_inode == other.program_inode &&
           program_device == other.program_device;
  }
};

Result<ProcessFacts> read_process_facts(const os::ProcFs& proc, pid_t pid);

// Whether the process still is the one that it was.
bool is_same_process(const os::ProcFs& proc, const ProcessFacts& facts);

// May `other` do nothing that `known` may not? Root may do everything in its own namespaces.
Result<void> check_rights(const ProcessFacts& known, const ProcessFacts& other);

// Was `pid` forked, directly or not, by `ancestor`? By the parents that /proc tells; of a process
// whose parent is gone by `channel_inode`, a memory of the ancestor's that it has mapped.
Result<void> check_descent(const os::ProcFs& proc, const ProcessFacts& ancestor,
                           const ProcessFacts& other, uint64_t channel_inode);

}  // namespace assay::capture
