// BpfPrograms: the backend's programs and maps in the kernel, loaded and attached by libbpf.
//
// It holds everything by file descriptor and pins nothing, so all of it ends with this process. In:
// which processes to watch, with the ranges of RangeLists and the tables of TablePool. Out: records
// in rings, one per CPU, as a BatchSource; counters. Threads: one owner; drain() by the reader's
// thread. Failures: load() and attach() give an Error with its remedy when the kernel, the rights
// or this build do not allow it; new_chunk() is null when there is no memory for tables.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "base/result.h"
#include "capture/bpf/shared.h"
#include "capture/perf/ring_reader.h"

namespace assay::capture {

struct BpfOptions {
  bool children = true;
  bool wakeups = true;
  bool check_cache = false;   // walk again at each hit of the cache and count differences
  uint32_t truth_one_in = 0;  // every nth walk comes with its bytes, to be compared; 0: none
  std::vector<int> cpus;
  size_t ring_budget_bytes = 32u << 20;  // for all rings together
};

using BpfCounters = std::array<uint64_t, bpf::kCounters>;

class BpfPrograms : public BatchSource {
 public:
  // Loads and verifies; nothing runs yet.
  static Result<std::unique_ptr<BpfPrograms>> load(const BpfOptions& options);

  // Begins to trace; `on_cpu` is the event whose every overflow on each CPU is a sample.
  virtual Result<void> attach(const perf_event_attr& on_cpu) = 0;
  // Samples a CPU again that was taken off and brought back.
  virtual Result<void> reopen_cpu(int cpu) = 0;
  virtual void detach() = 0;

  // Watches a process. False when the table of processes is full.
  virtual bool add_process(pid_t pid, uint64_t code) = 0;
  // Gives a watched process new ranges; does nothing for a process that has ended meanwhile.
  virtual void update_process(pid_t pid, uint64_t code) = 0;

  virtual std::span<bpf::range> ranges() = 0;
  virtual uint32_t* new_chunk(uint32_t number) = 0;
  virtual BpfCounters counters() const = 0;
  // The waits that are open now. Threads of watched processes whose start was not seen are followed
  // from this call on.
  virtual std::vector<bpf::wait_record> open_waits() = 0;
  // The user registers of the target's threads; exact for blocked threads.
  virtual std::vector<bpf::thread_registers> thread_registers() = 0;
  virtual size_t ring_bytes() const = 0;
  virtual bool takes_truth() const = 0;  // raw records are sent in addition to walked ones
};

}  // namespace assay::capture
