// Maps, tunables and counters of the programs.
#pragma once

#include "capture/bpf/shared.h"
#include "kernel_types.h"

// Set before loading; the verifier treats them as constants and removes code that they exclude.
const volatile bool follow_children = true;
const volatile bool has_prev_state = true;  // sched_switch has it as its fourth argument
const volatile bool trace_wakeups = true;
const volatile bool check_cache = false;          // walk again at every hit and count differences
const volatile unsigned int truth_one_in = 0;     // every nth walk comes with its bytes; 0: none
const volatile unsigned int raw_per_slice = 300;  // raw records per CPU and 100 ms
const volatile unsigned int most_caches = 8192;   // threads with a cache

struct words {
  u32 word[kChunkWords];
};

struct chunk_map {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(u32));
  __uint(value_size, sizeof(struct words));
};

// The pool of unwind tables; grows by chunks as modules come.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, kMostChunks);
  __type(key, u32);
  __array(values, struct chunk_map);
} tables SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, kMostRanges);
  __type(key, u32);
  __type(value, struct range);
} ranges SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, kMostProcesses);
  __type(key, u32);
  __type(value, struct process);
} processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct thread);
} threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct cache);
} caches SEC(".maps");

struct ring_map {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);  // the number of CPUs, set at load
  __type(key, u32);
  __array(values, struct ring_map);
} rings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, kCounters);
  __type(key, u32);
  __type(value, u64);
} counters SEC(".maps");

// The walk in progress. Kept in map memory, so that the verifier does not track its values.
struct walk {
  u64 pc, sp, fp;  // fp: its value, or the address where it was saved
  u64 ip, base;    // the sampled program counter and stack pointer
  u64 code;
  u64 hash;
  u64 now;
  u64 range_begin, range_bytes, to_text;
  u32 index_at, rows_at;
  u64 regs;                      // address of the task's registers
  u32 low, left;                 // of the search for a range
  u32 matching, number, victim;  // of the search for a way
  u32 replaces, which;
  u32 count, words, span, filled, far;
  u32 tid, tgid;
  u8 fp_state, is_return, end, flags;
  u8 uses_fp, is_cacheable, no_window, reserved;
  u64 window[2 * kWindowBytes / 8];  // a power of two, to be masked; the far one is the second half
  u16 at[kMostWords];
  u64 value[kMostWords];
  struct stack_record stack;
  struct kernel_record kernel;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 2);  // one for switches and wake-ups, one for samples, which may interrupt
  __type(key, u32);
  __type(value, struct walk);
} walks SEC(".maps");

// How far CLOCK_MONOTONIC is ahead of this CPU's scheduler clock, at least.
struct clock_gap {
  u64 gap, at;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct clock_gap);
} clock_gaps SEC(".maps");

struct raw_scratch {
  u64 slice;
  u32 in_slice;
  u32 walks;
  struct raw_record raw;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 2);
  __type(key, u32);
  __type(value, struct raw_scratch);
} raws SEC(".maps");

unsigned int last_id = 0;
unsigned int cache_count = 0;
unsigned int generation = 1;  // of all processes' ranges; threads remember theirs

static __always_inline void count(u32 which) {
  u64* counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) *counter += 1;
}

static __always_inline u32 new_id(void) {
  u32 id = __sync_fetch_and_add(&last_id, 1) + 1;
  return id ? id : __sync_fetch_and_add(&last_id, 1) + 1;
}

static __always_inline void* ring_here(void) {
  u32 cpu = bpf_get_smp_processor_id();
  return bpf_map_lookup_elem(&rings, &cpu);
}
