// Tasks: the target's living processes and threads, as evidence/ needs to know them.
//
// In: the kernel's records of forks, execs, renames and exits, in time order. Out: the process and
// thread that a thread id means at the time of the record being processed. Threads: one owner.
// Failures: an id that is not the target's is nullopt.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "model/ids.h"

namespace assay::evidence {

struct Task {
  model::ThreadId thread;
  model::ProcessId process;
  pid_t pid = 0;
};

class Tasks {
 public:
  virtual ~Tasks() = default;

  virtual std::optional<Task> find(pid_t tid) const = 0;
  // As find(), but a thread of the target whose fork record was lost is taken in.
  virtual std::optional<Task> find_or_adopt(pid_t pid, pid_t tid, TimeNs time) = 0;
  virtual std::optional<model::ProcessId> process(pid_t pid) const = 0;
  bool contains(pid_t pid) const { return process(pid).has_value(); }
  virtual std::vector<pid_t> pids() const = 0;
  virtual std::vector<pid_t> tids() const = 0;

  virtual void on_fork(pid_t parent_pid, pid_t parent_tid, pid_t pid, pid_t tid, TimeNs time) = 0;
  virtual void on_exec(pid_t pid, std::string_view comm, TimeNs time) = 0;
  virtual void on_comm(pid_t tid, std::string_view name) = 0;
  virtual void on_exit(pid_t pid, pid_t tid, TimeNs time) = 0;
  // Looks at what lives now, where records were lost or there are none.
  virtual void resync(TimeNs time) = 0;
};

}  // namespace assay::evidence
