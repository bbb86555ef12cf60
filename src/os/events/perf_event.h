// PerfKernel: the door to perf_event_open(2), its ioctls and its ring mappings.
//
// Tests hand in a fake whose rings are plain memory; everything above this door is the same code.
// Threads: safe everywhere; a RingMemory is used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

// The kernel's shared ring: one control page, then a power-of-two data area. Unmaps itself.
class RingMemory {
 public:
  virtual ~RingMemory() = default;
  virtual perf_event_mmap_page* control() = 0;
  virtual std::span<const std::byte> data() = 0;
};

class PerfKernel {
 public:
  virtual ~PerfKernel() = default;
  // Asks for what `attr` asks for. A kernel that is too old for some of it opens the event without that part, see
  // drop_newest_request().
  virtual Result<UniqueFd> open(const perf_event_attr& attr, pid_t pid, int cpu) = 0;
  virtual Result<std::unique_ptr<RingMemory>> map_ring(int fd, size_t data_bytes) = 0;
  virtual Result<void> redirect_output(int fd, int into_fd) = 0;
  virtual Result<void> enable(int fd) = 0;
  virtual Result<void> disable(int fd) = 0;
  virtual Result<uint64_t> id(int fd) = 0;
  // Records lost by an event opened with PERF_FORMAT_LOST alone; an error where that is not counted.
  virtual Result<uint64_t> lost(int fd) = 0;
};

// Takes back the newest thing that `attr` asks for and that a capture can do without: the count of lost records
// (Linux 6.0), then build ids in mapping records (Linux 5.12). False when nothing of the kind is left.
// inherit_thread (Linux 5.13) is not among them: without it an event would follow child processes that were not wanted.
bool drop_newest_request(perf_event_attr& attr);

// The running kernel.
PerfKernel& real_perf_kernel();

}  // namespace assay::os
