// FakeTasks: a target whose processes and threads a test lists. A thread gets the next id when it
// is added; nothing is read from anywhere.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "evidence/tasks.h"

namespace assay::evidence::testing {

class FakeTasks final : public Tasks {
 public:
  model::ThreadId add(pid_t pid, pid_t tid) {
    if (!processes.contains(pid)) processes[pid] = {next_process_++};
    threads[tid] = {{next_thread_++}, processes[pid], pid};
    return threads[tid].thread;
  }

  std::optional<Task> find(pid_t tid) const override {
    auto it = threads.find(tid);
    return it == threads.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<Task> find_or_adopt(pid_t pid, pid_t tid, TimeNs) override {
    if (!processes.contains(pid)) return std::nullopt;
    if (!threads.contains(tid)) add(pid, tid);
    return threads[tid].pid == pid ? std::optional(threads[tid]) : std::nullopt;
  }
  std::optional<model::ProcessId> process(pid_t pid) const override {
    auto it = processes.find(pid);
    return it == processes.end() ? std::nullopt : std::optional(it->second);
  }
  std::vector<pid_t> pids() const override { return keys(processes); }
  std::vector<pid_t> tids() const override { return keys(threads); }
  void on_fork(pid_t parent_pid, pid_t, pid_t pid, pid_t tid, TimeNs) override {
    if (processes.contains(parent_pid)) add(pid, tid);
  }
  // A new image has new ids, and one thread.
  void on_exec(pid_t pid, std::string_view comm, TimeNs) override {
    std::erase_if(threads, [&](const auto& entry) { return entry.second.pid == pid; });
    processes.erase(pid);
    add(pid, pid);
    comms[pid] = comm;
  }
  void on_comm(pid_t tid, std::string_view name) override { comms[tid] = name; }
  void on_exit(pid_t pid, pid_t tid, TimeNs) override {
    threads.erase(tid);
    for (const auto& [other, task] : threads) {
      if (task.pid == pid) return;
    }
    processes.erase(pid);
  }
  void resync(TimeNs) override { ++resyncs; }

  std::map<pid_t, model::ProcessId> processes;
  std::map<pid_t, Task> threads;
  std::map<pid_t, std::string> comms;
  int resyncs = 0;

 private:
  template <class Map>
  static std::vector<pid_t> keys(const Map& map) {
    std::vector<pid_t> out;
    for (const auto& entry : map) out.push_back(entry.first);
    return out;
  }
  uint32_t next_process_ = 0, next_thread_ = 0;
};

}  // namespace assay::evidence::testing
