// LoadProcess: the process that makes load during a capture, and everything it starts.
//
// In: a program and its arguments; what it writes to the given pipe comes out of read(). It has a
// process group of its own, and stop() ends the whole group. Threads: one object, one thread.
// Failures: a program that cannot be started. If Assay is killed, a guard ends the group.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/process/group_guard.h"
#include "os/process/launch.h"
#include "os/process/procfs.h"

namespace assay::session {

class LoadProcess {
 public:
  // `arguments` is given the descriptor that the process inherits for its reports.
  static Result<LoadProcess> start(
      const std::function<std::vector<std::string>(int report_fd)>& arguments);
  LoadProcess(LoadProcess&& other) noexcept { *this = std::move(other); }
  LoadProcess& operator=(LoadProcess&& other) noexcept;
  ~LoadProcess() { stop(); }

  pid_t pid() const { return launched_->pid(); }
  std::string read();  // what it wrote since the last call; never waits
  std::optional<os::ExitStatus> poll() { return launched_->poll(); }
  void stop();

 private:
  LoadProcess() = default;
  std::optional<os::LaunchedProcess> launched_;  // none: stopped, or moved from
  os::GroupGuard guard_;
  UniqueFd reports_;
};

// CPU time so far of every process in a group, and of the children that they have waited for.
int64_t group_cpu_ns(const os::ProcFs& proc, pid_t group);

}  // namespace assay::session
