// What the BPF programs and their reader share: records, map values, limits.
//
// Read as C by the programs and as C++ by the capture; depends only on linux/types.h. A record
// begins like a perf record (type, size), so that one Batch can hold both kinds; the types are
// beyond perf's. All times are CLOCK_MONOTONIC.
#pragma once

#include <linux/types.h>

#ifdef __cplusplus
namespace assay::capture::bpf {
#endif

enum {
  kMostFrames = 512,
  kWindowBytes = 8192,  // of the stack that are read at once
  kFarBytes = 1024,     // and once more beyond it: outer frames behind a large local array
  kMostWords = 88,      // stack words that a cached walk may depend on
  kWays = 8,            // cached walks of a thread
  kKernelFrames = 64,
  kRawBytes = 28672,  // stack copied for a walk that the program cannot do, at most
  kSmallRawBytes = 4096,
  kChunkWords = 65536,   // of the pool of unwind tables
  kMostChunks = 1024,    // 256 MB of them
  kMostRanges = 131072,  // mapped ranges of all processes
  kMostRangesOfOne = 4096,
  kMostProcesses = 16384,
  kIndexCountBits = 9,  // low bits of an index word: how many rows the page has
};

enum record_type {
  kRecordWait = 0x10001,
  kRecordSample,
  kRecordStack,
  kRecordRaw,
  kRecordKernel,
};

struct head {
  __u32 type;
  __u16 cpu;
  __u16 size;
  __u64 time;
};

enum wait_flag {
  kWaitPreempted = 1,
  kWaitFutexOwner = 2,  // `owner` was read from a mutex
  kWaitOnce = 4,        // no other record uses the user stack: drop it afterwards
  kWakerOnce = 8,       // likewise for the waker's stack
  kWaitOpen = 16,       // from the task iterator: not over yet
  kWaitQueued = 32,     // `queued` was read
};

// One interval off the CPU, written when it ends (`head.time`).
struct wait_record {
  struct head head;
  __u32 tid, tgid;
  __u64 out;                       // when it left the CPU; 0: before the capture
  __u64 woken;                     // 0: no wake-up was seen
  __u64 came;                      // when the kernel began to count it as running
  __u64 queued;                    // ns on run queues, as the kernel counts them
  __u64 arg;                       // the system call's first argument
  __u32 user_stack, kernel_stack;  // ids of earlier records; 0: none
  __u32 waker_tid, waker_stack;
  __u32 owner;    // tid that the mutex names; 0: none
  __u16 syscall;  // 0xffff: none
  __u16 flags;
};

struct sample_record {
  struct head head;
  __u32 tid, tgid;
  __u32 user_stack, kernel_stack;
};

// Beyond model::StackEnd: why a walk has to be done by the reader, from a raw record.
enum walk_end {
  kEndComplete = 0,
  kEndNoMemory = 1,  // a page that is not in memory
  kEndNoRule = 2,
  kEndBadMemory = 3,
  kEndNoRegister = 4,
  kEndTooDeep = 5,
  kEndFullRule = 32,
  kEndUnmapped = 33,
  kEndNoTables = 34,
};

enum stack_flag {
  kStackFramePointers = 1,  // some frames were found by frame pointer
  kStackOnce = 2,           // used by one record only
  kStackTruth = 4,          // a raw record beside a walked one, to compare
  kStackPlaceOnly = 8,
};

enum { kNotAReturn = 63 };  // bit of a pc that is no return address: the leaf, interrupted frames

struct stack_record {
  struct head head;
  __u32 id, tgid;
  __u32 replaces;  // id that is no longer used, except by wake-ups in progress; 0: none
  __u16 count;
  __u8 end, flags;
  __u64 pcs[kMostFrames];  // leaf first
};

struct kernel_record {
  struct head head;
  __u32 id, replaces;
  __u32 count, reserved;
  __u64 pcs[kKernelFrames];
};

struct raw_regs {  // struct pt_regs of x86-64
  __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
      sp, ss;
};

struct thread_registers {
  __u32 tid, tgid;
  struct raw_regs regs;
};

struct raw_record {
  struct head head;
  __u32 id, tgid, tid;
  __u32 copy_bytes;
  __u8 end, flags, reserved[6];
  struct raw_regs regs;
  __u8 copy[kRawBytes];
};

// An executable range of a process. Sorted by begin; `to_text` added to an address gives its text
// address in the module's table.
struct range {
  __u64 begin, end, to_text;
  __u32 index_at;  // word of the pool where the module's index begins; 0: no table
  __u32 rows_at;   // word that the index counts from
};

// Which ranges a process has: first | count << 24 | version << 40, in one word so that it changes
// at once. 0: not known yet.
struct process {
  __u64 code;
  __u32 tgid;
  __u32 reserved;
};

struct thread {
  __u64 out, woken, arg;
  __u64 code;  // the process's, as of `generation`
  __u64 ran;      // CPU time that the kernel had counted when it left
  __u64 delayed;  // run-queue time likewise
  __u32 generation;
  __u32 user_stack, kernel_stack, waker_tid, waker_stack, owner;
  __u16 syscall, flags;
  __u8 seen, has_cache;
};

struct way {
  __u64 code, fp, hash;
  __u64 kernel_hash, kernel_at;
  __u32 user_stack, kernel_stack, hits;
  __u16 words, span;  // how many, and bytes of stack they lie in
  __u8 uses_fp, is_used, reserved[2];
  __u32 far;             // where the second window begins; 0: there is none
  __u16 at[kMostWords];  // in words of the window, the far ones after the near ones
  __u64 value[kMostWords];
};

struct cache {
  __u64 ip[kWays], sp[kWays];
  __u32 key[kWays];
  __u32 next;
  struct way ways[kWays];
};

enum counter {
  kCountSwitches,
  kCountHits,
  kCountWalks,
  kCountUncached,   // too deep or too large for the cache
  kCountRingFull,   // records that found no room
  kCountStackLost,  // of them, stacks
  kCountRaw,
  kCountRawLimited,  // raw records not written: too many
  kCountNoMemory,    // threads without state
  kCountNoCache,     // threads without a cache
  kCountChecked,     // hits that were walked again (check mode)
  kCountWrong,       // and differed
  kCountMissedIn,    // threads that left a CPU without a recorded switch-in
  kCountSamples,
  kCountWaits,
  kCounters,
};

#ifdef __cplusplus
}  // namespace assay::capture::bpf
#endif
