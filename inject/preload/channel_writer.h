// ChannelWriter: the target's end of the heap channel.
//
// Maps a channel that Assay made, or makes one, and appends records to its ring. Never waits: when
// the ring is full the record is dropped and counted. Any thread writes; only the attacher opens
// and closes. A closed channel is unmapped only when no writer is left inside (otherwise it stays
// mapped, unused). Only the process that opened it writes: a forked child sees that the channel
// belongs to another process and does not use it. The channels for children stay mapped in a child.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "inject/preload/heap_channel.h"

namespace assay::inject {

struct AllocSample {
  uint64_t time_ns, address, bytes, rate_bytes;
  uint32_t tid;
  HeapFunction function;
  bool is_complete;
  const uintptr_t* pcs;
  uint32_t frames;
};

struct ChannelSettings {
  bool is_sampling = false;
  uint64_t ring_bytes = 0, rate_bytes = 0;
  uint32_t flags = 0, max_samples_per_core = 0;
};

class ChannelWriter {
 public:
  // False: not a channel of this version, or it belongs to another process.
  bool open_fd(int fd);
  bool open_path(const char* path);
  // A new file at `path`, or the process's own from before an exec.
  bool create(const char* path, uint64_t ring_bytes, uint64_t rate_bytes);
  // In a forked child: takes a free one of its parent's channels for children, or unmaps them.
  bool claim_for_child(uint32_t parent_pid);
  // In memory of the process's own, which Assay finds by its name among the mappings.
  bool create_unnamed(const ChannelSettings& settings);
  void close();
  // In a forked child: the parent's channel is not ours. `unmap`: no thread of this process can
  // still be inside of it.
  void forget(bool unmap);
  // Opened by the process that this one was forked from.
  bool is_foreign() const;
  uint32_t owner() const { return pid_; }  // the process that opened it
  // The parameters for a forked child's channel.
  ChannelSettings settings() const;

  bool is_open() const { return header_.load(std::memory_order_relaxed) != nullptr; }
  // Bytes between samples that Assay asks for; 0: off, not ours, or no room in the ring.
  uint64_t wanted_rate() const;
  uint32_t max_samples_per_core() const;
  bool wants_mmap() const;

  bool write_alloc(const AllocSample& sample);
  bool write_free(uint64_t time_ns, uint64_t address, uint32_t tid);

  void count_dropped_live();
  void set_ready(uint64_t hooked_slots);
  void add_hooked(uint64_t slots);
  void set_problem(HeapProblem problem);

 private:
  bool adopt(void* mapping, uint64_t bytes);
  bool fill(long fd, const ChannelSettings& settings);
  char* reserve(HeapChannelHeader& header, uint64_t bytes);
  void unmap_own(HeapChannelHeader* header) const;
  void unmap_child_channels();

  std::atomic<HeapChannelHeader*> header_{nullptr};
  mutable std::atomic<int> users_{0};
  uint64_t ring_bytes_ = 0;    // as it was when mapped: the shared memory is not trusted later
  uint64_t mapped_bytes_ = 0;  // without those for children; 0: it is one of those
  char* child_channels_ =
      nullptr;  // after the ring; kept in a child after it dropped the parent's channel
  uint32_t child_count_ = 0;
  uint32_t pid_ = 0;

  friend class ChannelUse;
};

extern ChannelWriter channel_writer;

}  // namespace assay::inject
