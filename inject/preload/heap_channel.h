// The heap channel: memory shared by the sampler inside a target and Assay, which reads it.
//
// One file or memfd, mapped by both: a control page, then a ring of records. The target writes
// records and never waits: when the ring is full a record is dropped and counted. Assay reads, and
// commands through `mode` and `rate_bytes`. Everything is plain data of fixed layout (both sides
// are x86-64 or aarch64 little-endian of one build's version; `version` is checked by either side).
// The reader checks everything in it: a target may overwrite it.
//
// After the ring there may be channels for children that the target forks (`child_channels` of
// them, each a header page and a ring of kChildRingBytes). A child takes a free one by setting its
// `pid`; Assay frees it when the child has ended. The records of a child stay readable even if it
// lived only for a moment.
//
// Threads: any thread of the target writes (reserve by compare-and-swap on `head`, fill, then
// publish the record by storing `size` with release); one reader moves `tail`.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::inject {

inline constexpr uint64_t kHeapChannelMagic = 0x3150414548594153;  // "SAYHEAP1"
inline constexpr uint32_t kHeapChannelVersion = 1;
inline constexpr uint64_t kHeapChannelHeaderBytes = 4096;
inline constexpr uint32_t kMaxHeapFrames = 192;
inline constexpr uint64_t kChildRingBytes = 64 << 10;
inline constexpr uint64_t kChildChannelBytes = kHeapChannelHeaderBytes + kChildRingBytes;
inline constexpr uint32_t kMostChildChannels = 64;

enum class HeapMode : uint32_t { off = 0, sampling = 1, detached = 2 };

struct HeapChannelHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;  // of the writer; a forked child writes to a channel of its own, or not at all
  uint64_t ring_bytes;  // a power of two
  // Assay to target.
  std::atomic<uint32_t> mode;        // HeapMode
  std::atomic<uint64_t> rate_bytes;  // mean bytes between samples
  // Target to Assay.
  std::atomic<uint64_t> head;             // bytes ever reserved
  std::atomic<uint64_t> tail;             // bytes ever read; Assay writes it
  std::atomic<uint64_t> dropped_records;  // ring was full
  std::atomic<uint64_t> dropped_live;     // table of sampled addresses was full
  std::atomic<uint64_t> hooked_slots;     // GOT slots patched, or 1 when preloaded
  std::atomic<uint32_t> ready;            // 1: hooks are in place and the probe allocation was seen
  std::atomic<uint32_t> problem;          // 0, or a HeapProblem that keeps the sampler from working
  // Assay to target; read when the target attaches or starts. 0 means the default.
  std::atomic<uint32_t> flags;                 // HeapFlag
  std::atomic<uint32_t> max_samples_per_core;  // a second, default 200; above it the rate is raised
  uint32_t child_channels;                     // behind the ring
  // Target to Assay; of a child's channel, set before `ready`.
  std::atomic<uint32_t> parent_pid;
};

enum HeapFlag : uint32_t {
  kHeapWithMmap = 1,  // anonymous mmap by the program is allocation too
};

enum class HeapProblem : uint32_t { none = 0, static_allocator = 1, no_memory = 2, version = 3 };

enum class HeapRecordKind : uint16_t { alloc = 1, free = 2, thread = 3, padding = 4 };

// Precedes every record; records are 8-byte aligned and do not wrap (a padding record fills the
// end).
struct HeapRecordHeader {
  std::atomic<uint32_t>
      size;  // of the whole record; 0 until published; the reader zeroes what it has read
  HeapRecordKind kind;
  uint16_t frames;  // alloc: pcs that follow the record
};

struct HeapAllocRecord {
  HeapRecordHeader header;
  uint64_t time_ns;  // CLOCK_MONOTONIC, as for samples and waits
  uint64_t address;
  uint64_t size;        // bytes asked for
  uint64_t rate_bytes;  // in force; weight = 1 / (1 - exp(-size / rate))
  uint32_t tid;
  uint16_t function;  // HeapFunction
  uint16_t complete;  // 1: the walk ended at the thread's first frame
  // uint64_t pcs[header.frames], return addresses, innermost first; pcs[0] is the allocating
  // function's caller
};

enum class HeapFunction : uint16_t { malloc, calloc, realloc, aligned, operator_new, mmap };

struct HeapFreeRecord {
  HeapRecordHeader header;
  uint64_t time_ns;
  uint64_t address;
  uint32_t tid;
  uint32_t reserved;
};

static_assert(sizeof(HeapRecordHeader) == 8);
static_assert(sizeof(HeapAllocRecord) == 48);
static_assert(sizeof(HeapFreeRecord) == 32);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace assay::inject
