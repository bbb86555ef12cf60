// Processes and threads as the run knows them.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/clock.h"
#include "model/ids.h"

namespace assay::model {

inline constexpr TimeNs kStillRunning = INT64_MAX;

// One program image in one process. exec() ends a Process and begins another with the same pid.
struct Process {
  ProcessId id;
  pid_t pid = 0;
  pid_t parent_pid = 0;
  std::string exe;      // path as /proc/PID/exe gives it, without " (deleted)"
  std::string comm;     // main thread's name
  std::string cmdline;  // arguments joined by spaces; for people, never for matching
  std::string role;     // "main", "worker 0", …, or the exe's name
  std::string build_id;
  std::string cgroup;
  TimeNs begin_ns = 0;            // when it was first known, or window start
  TimeNs end_ns = kStillRunning;  // exit or exec
};

// The name for people in reports, exports and labels: the name of the main thread, as `ps` and
// `top` show it. The program file may have another name, because a link leads to it or an
// interpreter runs it. The file's name is used where the thread's name is unknown; "process" when
// neither is known.
inline std::string_view process_name(const Process& process) {
  if (!process.comm.empty()) return process.comm;
  std::string_view exe = process.exe;
  exe.remove_prefix(exe.rfind('/') + 1);  // 0 when there is none
  return exe.empty() ? std::string_view("process") : exe;
}

struct Thread {
  ThreadId id;
  ProcessId process;
  pid_t tid = 0;
  std::string name;
  std::string pool;  // name without its number: "grpc_worker-1,2,3" share "grpc_worker-*"
  TimeNs begin_ns = 0;
  TimeNs end_ns = kStillRunning;
};

}  // namespace assay::model
