// Tracker: follows a target's processes and threads through fork, exec, rename and exit.
//
// In: the kernel's records in time order, and the state of /proc when the capture began. Out:
// model::Process and model::Thread values through a sink; a changed value is put again under the
// same id. Only living threads are kept, so memory grows with the target's size and not with the
// capture's length.
//
// exec ends a Process and its Threads and begins new ones with the same pid. A record of an unknown
// thread of a tracked process (its fork record was lost) adopts the thread. A record that is older
// than the adoption from /proc does not undo it. A reused tid ends its former holder. Threads: one;
// find() is one hash lookup. Reads /proc at exec and in resync() only.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <sys/types.h>

#include "base/clock.h"
#include "model/process.h"
#include "os/process/procfs.h"
#include "target/roles.h"
#include "target/target.h"

namespace assay::target {

class TrackerSink {
 public:
  virtual ~TrackerSink() = default;
  virtual void put_process(const model::Process& process) = 0;  // new, or changed: same id
  virtual void put_thread(const model::Thread& thread) = 0;
};

struct TrackedTask {
  model::ThreadId thread;
  model::ProcessId process;
  pid_t pid = 0;
};

class Tracker {
 public:
  // `proc` and `sink` outlive the tracker.
  Tracker(const os::ProcFs& proc, TrackerSink& sink, bool include_children)
      : proc_(proc), sink_(sink), include_children_(include_children) {}

  // What resolve() found; once, before any record.
  void adopt(const ResolvedTarget& target, TimeNs time);
  // A command that waits to be released: its first exec completes this Process instead of beginning
  // another.
  void adopt_launched(pid_t pid, const std::string& comm, TimeNs time);

  void on_fork(pid_t parent_pid, pid_t parent_tid, pid_t child_pid, pid_t child_tid, TimeNs time);
  void on_exec(pid_t pid, std::string_view comm, TimeNs time);
  void on_comm(pid_t tid, std::string_view name);
  void on_exit(pid_t pid, pid_t tid, TimeNs time);

  // Null when the thread is not of the target. Valid until the next on_*() call.
  const TrackedTask* find(pid_t tid) const {
    auto found = threads_.find(tid);
    return found == threads_.end() ? nullptr : &found->second.task;
  }
  // As find(), but an unknown thread of a tracked process is adopted, and a tid that now belongs to
  // another process is not mistaken for the earlier thread. Null for a thread that has just exited:
  // the kernel still switches it out once after its exit record.
  const TrackedTask* find_or_adopt(pid_t pid, pid_t tid, TimeNs time);

  bool contains(pid_t pid) const { return processes_.contains(pid); }
  const model::Process* process(pid_t pid) const;
  const model::Thread* thread(pid_t tid) const;
  size_t process_count() const { return processes_.size(); }
  size_t thread_count() const { return threads_.size(); }
  std::vector<pid_t> pids() const;
  std::vector<pid_t> tids() const;

  // Repairs from /proc what lost records left wrong: adopts unknown threads and children, and ends
  // threads that two calls in a row did not find. Returns how many threads it adopted.
  uint32_t resync(TimeNs time);

 private:
  struct LiveProcess {
    model::Process record;
    std::unordered_set<pid_t> tids;
    bool on_top = false;
    bool awaits_exec = false;
  };
  struct LiveThread {
    TrackedTask task;
    model::Thread record;
    TimeNs missing_since = 0;  // resync() did not find it then; 0: it did
  };
  struct Burial {
    pid_t tid = 0;
    TimeNs time = 0;
  };

  LiveProcess& begin_process(model::Process record, bool on_top);
  void begin_thread(LiveProcess& process, pid_t tid, std::string name, TimeNs time);
  void end_thread(pid_t tid, TimeNs time);  // its process too when it was the last
  void end_image(LiveProcess& process, TimeNs time);
  void fork_process(const LiveProcess& parent, pid_t parent_tid, pid_t child, TimeNs time);
  void read_image(model::Process& record);
  std::string role_after_exec(const LiveProcess& process, const std::string& exe,
                              std::string_view comm);
  void rename(LiveThread& thread, std::string name);
  bool known_since(pid_t tid, pid_t pid, TimeNs time);
  bool just_exited(pid_t tid, TimeNs time) const;
  uint32_t adopt_new_threads(LiveProcess& process, const std::vector<pid_t>& present, TimeNs time);
  uint32_t adopt_new_children(TimeNs time);

  const os::ProcFs& proc_;
  TrackerSink& sink_;
  bool include_children_;
  RoleBook roles_;
  uint32_t next_process_ = 0;
  uint32_t next_thread_ = 0;
  std::unordered_map<pid_t, LiveProcess> processes_;
  std::unordered_map<pid_t, LiveThread> threads_;
  std::array<Burial, 4096> burials_{};  // the last exit, by tid modulo the size
};

}  // namespace assay::target
