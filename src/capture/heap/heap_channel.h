// HeapChannel: Assay's end of the memory that a heap sampler inside a target writes into.
//
// In: a shared mapping (inject/preload/heap_channel.h) that the target may scribble over; out:
// records whose every number was checked on a private copy. A channel in a memory file is sealed,
// so that the target cannot shrink it under us; of one that a launched program made in a file the
// size is looked at before every round, and pages that vanish all the same are replaced
// (target_memory.h). When the channel is closed here, the sampler is told to stop. A channel that
// we make is followed by smaller ones for children that the target forks: their records can be read
// even after the child has ended. The process ids that children claim are checked by kinship.h.
// Threads: one reader. Failures: creating it may fail; damaged contents are skipped and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "capture/heap/trust/target_memory.h"
#include "model/heap/heap.h"

namespace assay::inject {
struct HeapChannelHeader;
}

namespace assay::capture {

struct HeapRecord {
  bool is_free = false;
  TimeNs time = 0;
  uint64_t address = 0;
  uint32_t tid = 0;  // in the target's own pid namespace
  // Of allocations.
  uint64_t size_bytes = 0;
  uint64_t rate_bytes = 0;
  model::HeapFunction function = model::HeapFunction::malloc;
  bool complete = false;
  std::span<const uint64_t> pcs;  // return addresses, innermost first; valid during the visit
};

// What went wrong so far.
struct HeapChannelLosses {
  uint64_t dropped = 0;       // records that found the ring full
  uint64_t dropped_live = 0;  // allocations whose end cannot be seen
  uint64_t damaged = 0;       // times that the ring's contents made no sense and were skipped

  HeapChannelLosses& operator+=(const HeapChannelLosses& other) {
    dropped += other.dropped;
    dropped_live += other.dropped_live;
    damaged += other.damaged;
    return *this;
  }
};

enum class HeapProblem : uint8_t { none, static_allocator, no_memory, version, other };

// A forked child that took one of its parent's channels for children. Process ids are as the target
// sees them.
struct HeapChild {
  uint32_t index = 0;
  pid_t pid = 0, parent = 0;
};

// The reading half, over any memory of the channel's layout: header page, then the ring.
class HeapRing {
 public:
  // `memory` is at least a header page and a ring of `ring_bytes`, a power of two.
  HeapRing(std::span<std::byte> memory, uint64_t ring_bytes);
  // Hands over what is published, at most `most` records; returns how many.
  size_t drain(size_t most, const std::function<void(const HeapRecord&)>& visit);
  // The target's clock is ahead of ours by so much; its times are told in ours.
  void set_clock_ahead(int64_t ns) { ahead_ns_ = ns; }
  uint64_t damaged() const { return damaged_; }
  uint64_t bytes() const { return ring_bytes_; }
  uint64_t pending_bytes() const;

 private:
  enum class Step : uint8_t { nothing, skipped, record };
  Step next(uint64_t head, const std::function<void(const HeapRecord&)>& visit);
  void skip_to(uint64_t position);
  bool hand_over(uint32_t size, const std::function<void(const HeapRecord&)>& visit);
  bool is_sound(const HeapRecord& record) const;
  TimeNs time_at(size_t offset) const;

  inject::HeapChannelHeader* header_;
  std::byte* ring_;
  uint64_t ring_bytes_;
  uint64_t tail_ = 0;  // ours: what the shared one says is not believed
  uint64_t damaged_ = 0;
  TimeNs now_ = 0;  // when the round began
  int64_t ahead_ns_ = 0;
  std::vector<uint64_t> copy_;
};

class HeapChannel {
 public:
  static constexpr uint64_t kDefaultRingBytes = uint64_t{4} << 20;
  static constexpr uint32_t kChildChannels = 32;

  // A channel that a launched program made in a file; an Error when it is none (yet).
  static Result<std::unique_ptr<HeapChannel>> open(const std::string& path);
  // The same of a file that is open; `name` is for messages.
  static Result<std::unique_ptr<HeapChannel>> adopt(UniqueFd file, const std::string& name);
  // Makes an empty memory file of the target's into a channel with room for kChildChannels behind
  // it. Quick: a thread of the target is held meanwhile.
  static Result<void> prepare(int memory, uint64_t ring_bytes, uint64_t rate_bytes);
  // Takes the memory for all of it, so that the target does not die for want of a page when it
  // writes. Before sampling begins.
  Result<void> reserve() const;
  // From here on children that the target forks find channels; before, they go without.
  void open_for_children();
  // prepare(), adopt() and open_for_children() in one.
  static Result<std::unique_ptr<HeapChannel>> create_in(UniqueFd memory, uint64_t ring_bytes,
                                                        uint64_t rate_bytes);
  ~HeapChannel();
  HeapChannel(const HeapChannel&) = delete;
  HeapChannel& operator=(const HeapChannel&) = delete;

  // What the target was told; sampling begins and ends with these.
  void start_sampling();
  void stop_sampling();

  bool ready() const;  // hooks stand and the probe was seen
  HeapProblem problem() const;
  uint64_t hooked_slots() const;
  HeapChannelLosses losses() const;

  size_t drain(const std::function<void(const HeapRecord&)>& visit);
  void set_clock_ahead(int64_t ns) { ring_.set_clock_ahead(ns); }
  uint64_t inode() const { return inode_; }

  // Children that have a channel now, and one of those channels. It must be given back when the
  // child is gone, for others to take.
  std::vector<HeapChild> children() const;
  Result<std::unique_ptr<HeapChannel>> open_child(uint32_t index) const;
  void give_back(uint32_t index);

 private:
  HeapChannel(UniqueFd fd, uint64_t offset, SharedPages pages, uint64_t ring_bytes);
  static Result<std::unique_ptr<HeapChannel>> map(UniqueFd fd, uint64_t offset, uint64_t size,
                                                  const std::string& name);
  inject::HeapChannelHeader& child(uint32_t index) const;
  uint32_t child_count() const;
  inject::HeapChannelHeader& header() const;

  UniqueFd fd_;
  uint64_t offset_;  // in the file
  SharedPages pages_;
  std::span<std::byte> memory_ = pages_.bytes();
  HeapRing ring_;
  uint64_t inode_ = 0;
};

}  // namespace assay::capture
