// run_in_worker(): does the part of a command that parses bytes of strangers in a child process that
// may do nothing but that.
//
// The child is forked, becomes nobody where it was root, drops every capability, and may make only
// the system calls of AllowedCalls (confine.h). What it needs of the file system it asks for
// (file_keeper.h). This process waits, answers, passes signals on, and reads nothing itself. In:
// rules and the work; what the work prints goes where this process prints. Out: its exit code.
// Threads: called while no other thread works. Failures: an Error when the child cannot be started,
// died of a signal that nobody sent, or needed more memory than it may have.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "os/sandbox/file_keeper.h"
#include "os/sandbox/system_call_filter.h"

namespace assay::os {

struct WorkerRules {
  std::string reads;  // what it reads, for messages
  FilePolicy files = {};
  AllowedCalls calls{.writes = true};
  uint64_t heap_bytes = 0;      // 0: three quarters of the machine's memory
  std::vector<int> keeps = {};  // descriptors that it shall have besides 0, 1, 2
  std::function<void(const std::string&)> told = nullptr;  // gets what tell_starter() says
};

Result<int> run_in_worker(const WorkerRules& rules, const std::function<int()>& work);

// From inside the work.
Result<void> tell_starter(const std::string& text);

}  // namespace assay::os
