// HeapEvidence: records of heap samplers become allocations and frees in the sink.
//
// In: records in the order each process wrote them. Out: every sampled allocation under its own
// number, the free that ended it, and snapshots of what is live. Stacks are interned beside those
// of samples and waits. Threads: one owner, the one of the address spaces and stacks; counts() from
// any. Failures: none; a free of what was never seen is left out, a thread that was not announced
// is adopted.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "capture/heap/heap_channel.h"
#include "evidence/hot_source.h"
#include "evidence/sink.h"
#include "evidence/stacks/stack_builder.h"
#include "evidence/tasks.h"
#include "os/process/procfs.h"

namespace assay::evidence {

struct HeapCounts {
  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> frees{0};
  std::atomic<int64_t> live_bytes{0};  // estimated, of all processes
};

class HeapEvidence {
 public:
  struct Parts {
    const os::ProcFs& proc;
    StackBuilder& stacks;
    Tasks& tasks;
    Sink& sink;
    HotSource& hot_source;
  };
  explicit HeapEvidence(const Parts& parts) : parts_(parts) {}

  // `pid` as Assay sees it; the record's tid is as the target does.
  void add(pid_t pid, const capture::HeapRecord& record);
  void take_snapshots(TimeNs now);
  // Its memory is gone, and so is what was live in it.
  void forget(pid_t pid) { processes_.erase(pid); }

  const HeapCounts& counts() const { return counts_; }

 private:
  struct Live {
    uint64_t id = 0;
    model::ThreadId thread;
    double bytes = 0, objects = 0;  // what it stands for
  };
  struct Process {
    std::unordered_map<uint64_t, Live> live;  // by address
    std::unordered_map<uint32_t, pid_t> outer_tids;
    bool own_pids = false;  // it is in a pid namespace of its own
    bool looked = false;
    double bytes = 0, objects = 0;
  };

  Process& process(pid_t pid);
  pid_t outer_tid(pid_t pid, Process& process, uint32_t tid);
  void add_alloc(pid_t pid, Process& process, const capture::HeapRecord& record);
  void add_free(pid_t pid, Process& process, const capture::HeapRecord& record);
  void end(Process& process, uint64_t address, TimeNs time, model::ThreadId thread);
  void add_live(double bytes);

  Parts parts_;
  std::unordered_map<pid_t, Process> processes_;
  std::vector<unwind::UserFrame> frames_;
  uint64_t next_id_ = 0;
  double live_bytes_ = 0;  // of all processes
  HeapCounts counts_;
};

}  // namespace assay::evidence
