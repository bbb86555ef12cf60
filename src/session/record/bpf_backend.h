// BpfBackend: the BPF programs, the perf events they need beside them, and their tables, as one
// part of a capture.
//
// The side band (mmap, fork, exec, comm and exit records) stays perf's: it carries the names that
// tables and reports need, in time order with everything else. Which processes are watched is known
// in the kernel: children are added by the program at their fork. Threads: the owner's calls follow
// one another; refresh() by the consumer. Failures: an Error with its remedy when the machine does
// not allow it; what runs out later is noted in the run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "capture/bpf/bpf_programs.h"
#include "capture/perf/event_set.h"
#include "evidence/bpf_evidence.h"
#include "evidence/bpf_tables.h"
#include "evidence/sink.h"
#include "evidence/tasks.h"
#include "os/machine/capabilities.h"

namespace assay::session {

// Asked for by tests: the backend checks itself.
struct BpfCheck {
  bool cache = false;         // walk again at every hit of the stack cache
  uint32_t truth_one_in = 0;  // compare every nth walk with the Unwinder's on the same bytes
};

// What the backend says of itself when the capture has ended.
struct BpfReport {
  capture::BpfCounters counters{};
  evidence::BpfTruth truth;
  uint64_t stacks = 0, raw_stacks = 0, frame_pointer_stacks = 0;
  size_t table_bytes = 0, ring_bytes = 0;
};

// One line for each number: "name value".
std::string to_text(const BpfReport& report);

// Whether the backend can be used here: loads the programs and drops them. An Error says why not.
Result<void> try_bpf(const os::Capabilities& machine);

class BpfBackend {
 public:
  struct Options {
    int frequency_hz = 99;
    bool children = true;
    bool wakeups = true;
    BpfCheck check;
  };
  static Result<std::unique_ptr<BpfBackend>> open(const os::Capabilities& machine,
                                                  const Options& options);

  std::unique_ptr<capture::EventSet> take_side_band() { return std::move(side_band_); }
  capture::BpfPrograms& programs() { return *programs_; }
  std::vector<capture::BatchSource*> sources() { return {programs_.get()}; }

  void join(evidence::AddressSpaces& spaces, unwind::Unwinder& unwinder);
  void mapping_changed(pid_t pid) { tables_->changed(pid); }
  // Attaches the programs and watches these processes.
  Result<void> begin(const std::vector<pid_t>& pids);
  void watch(const std::vector<pid_t>& pids);
  // Hands the kernel what changed in the target since.
  void refresh(const evidence::Tasks& tasks);
  Result<void> reopen_cpu(int cpu) { return programs_->reopen_cpu(cpu); }
  void end() { programs_->detach(); }

  void note_limits(const evidence::BpfEvidence& evidence, evidence::Sink& sink) const;
  BpfReport report(const evidence::BpfEvidence& evidence) const;

 private:
  std::unique_ptr<capture::BpfPrograms> programs_;
  std::unique_ptr<capture::EventSet> side_band_;
  perf_event_attr on_cpu_{};
  std::unique_ptr<evidence::BpfTables> tables_;
  std::set<pid_t> watched_;
  bool is_full_ = false;
};

}  // namespace assay::session
