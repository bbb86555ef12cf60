// ProcessRegister: hands the target's processes and threads to the sink, with what can be known of
// their programs while they live.
//
// In: processes and threads as they appear and change, from the consumer thread. Out: the sink;
// facts about the machine and about each program. Facts are read in write_new_facts(), on the
// caller's thread, so that the consumer never waits for them. Threads: put_* by one, write_* by
// another. Failures: what cannot be read is left out.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "evidence/sink.h"
#include "os/machine/cgroup.h"
#include "os/machine/host.h"
#include "os/process/procfs.h"

namespace assay::evidence {

class ProcessRegister {
 public:
  ProcessRegister(const os::ProcFs& proc, Sink& sink) : proc_(proc), sink_(sink) {}

  void put_process(const model::Process& process);
  void put_thread(const model::Thread& thread) { sink_.put_thread(thread); }

  void write_host_facts();
  // Facts of the processes that appeared since the last call; a bounded number in all, since the
  // hundredth worker tells nothing that the first did not.
  void write_new_facts();

 private:
  struct Newcomer {
    model::ProcessId id;
    pid_t pid = 0;
  };
  std::string build_id(pid_t pid, const std::string& exe);

  const os::ProcFs& proc_;
  Sink& sink_;
  os::Host host_;
  os::CgroupFs cgroups_;
  std::unordered_map<std::string, std::string> build_ids_;  // by exe; consumer thread
  uint32_t next_process_ = 0;                               // ids below were seen; consumer thread
  std::mutex mutex_;
  std::deque<Newcomer> newcomers_;  // guarded by mutex_
  int facts_written_ = 0;
};

}  // namespace assay::evidence
