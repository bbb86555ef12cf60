// TrackedTasks: the target's Tracker, as evidence/ asks it.
//
// In: what the target was when the capture began, then the kernel's records. Out: the process and
// thread that an id means; every process and thread that is new or changed goes to the
// ProcessRegister. Threads: one owner. Failures: the Tracker's.
#pragma once

#include "evidence/process_register.h"
#include "evidence/tasks.h"
#include "target/tracker.h"

namespace assay::session {

class TrackedTasks final : public evidence::Tasks, private target::TrackerSink {
 public:
  TrackedTasks(const os::ProcFs& proc, evidence::ProcessRegister& known, bool include_children)
      : known_(known), tracker_(proc, *this, include_children) {}

  // How the capture begins.
  void adopt(const target::ResolvedTarget& target, TimeNs time) { tracker_.adopt(target, time); }
  void adopt_launched(pid_t pid, const std::string& comm, TimeNs time) {
    tracker_.adopt_launched(pid, comm, time);
  }
  size_t process_count() const { return tracker_.process_count(); }

  std::optional<evidence::Task> find(pid_t tid) const override { return task(tracker_.find(tid)); }
  std::optional<evidence::Task> find_or_adopt(pid_t pid, pid_t tid, TimeNs time) override {
    return task(tracker_.find_or_adopt(pid, tid, time));
  }
  std::optional<model::ProcessId> process(pid_t pid) const override {
    const model::Process* found = tracker_.process(pid);
    return found == nullptr ? std::nullopt : std::optional(found->id);
  }
  std::vector<pid_t> pids() const override { return tracker_.pids(); }
  std::vector<pid_t> tids() const override { return tracker_.tids(); }
  void on_fork(pid_t parent_pid, pid_t parent_tid, pid_t pid, pid_t tid, TimeNs time) override {
    tracker_.on_fork(parent_pid, parent_tid, pid, tid, time);
  }
  void on_exec(pid_t pid, std::string_view comm, TimeNs time) override {
    tracker_.on_exec(pid, comm, time);
  }
  void on_comm(pid_t tid, std::string_view name) override { tracker_.on_comm(tid, name); }
  void on_exit(pid_t pid, pid_t tid, TimeNs time) override { tracker_.on_exit(pid, tid, time); }
  void resync(TimeNs time) override { tracker_.resync(time); }

 private:
  static std::optional<evidence::Task> task(const target::TrackedTask* found) {
    if (found == nullptr) return std::nullopt;
    return evidence::Task{found->thread, found->process, found->pid};
  }
  void put_process(const model::Process& process) override { known_.put_process(process); }
  void put_thread(const model::Thread& thread) override { known_.put_thread(thread); }

  evidence::ProcessRegister& known_;
  target::Tracker tracker_;
};

}  // namespace assay::session
