// The exact cache of a thread's walks, and the writing of stack records.
//
// A way keeps every stack word that its walk depended on. When all of them, the registers used and
// the process's mappings are unchanged, a new walk would give the same stack, and comparing is
// several times cheaper than walking.
#pragma once

#include "walk.bpf.h"

enum { kHasCache = 1, kCacheRefused = 2 };

struct found_stack {
  u32 user, kernel;
  bool once;
};

// Registers and a copy of the stack, for a walk that only the reader can do (or should repeat).
__noinline u32 emit_raw(struct walk* w, u32 id) {
  if (!w) return 0;
  u32 which = w->which;
  struct raw_scratch* scratch = bpf_map_lookup_elem(&raws, &which);
  void* ring = ring_here();
  if (!scratch || !ring) return 0;
  u64 slice = w->now / 100000000;
  if (scratch->slice != slice) {
    scratch->slice = slice;
    scratch->in_slice = 0;
  }
  if (scratch->in_slice >= raw_per_slice) {
    count(kCountRawLimited);
    return 0;
  }
  scratch->in_slice += 1;
  struct raw_record* raw = &scratch->raw;
  u64 sp = w->base;
  u32 bytes = 0;
  // A large copy is made only where it is likely to be needed: most stacks of waits are small.
  bool is_blind = w->end == kEndNoTables || w->end == kEndUnmapped;
  u32 most = which == 1 || w->sp - sp > kSmallRawBytes / 2 ? kRawBytes
             : is_blind                                    ? 2 * kSmallRawBytes
                                                           : kSmallRawBytes;
  for (u32 i = 0; i < kRawBytes / 1024; ++i) {
    if (i * 1024 >= most) break;
    if (bpf_probe_read_user(raw->copy + i * 1024, 1024, (void*)(sp + i * 1024))) {
      u32 rest = 4096 - ((sp + i * 1024) & 4095);  // up to the page that is not in memory
      MASK(rest, 0x3ff);
      if (!bpf_probe_read_user(raw->copy + i * 1024, rest, (void*)(sp + i * 1024))) bytes += rest;
      break;
    }
    bytes += 1024;
  }
  if (bytes > kRawBytes) return 0;
  bpf_probe_read_kernel(&raw->regs, sizeof raw->regs, (void*)w->regs);
  raw->head.type = kRecordRaw;
  raw->head.cpu = bpf_get_smp_processor_id();
  raw->head.time = w->now;
  raw->id = id ? id : new_id();
  raw->tgid = w->tgid;
  raw->tid = w->tid;
  raw->copy_bytes = bytes;
  raw->end = w->end;
  raw->flags = (w->flags & kStackOnce) | (id ? kStackTruth : 0);
  u32 size = __builtin_offsetof(struct raw_record, copy) + ((bytes + 7) & ~7u);
  if (size > sizeof *raw) return 0;
  raw->head.size = size;
  count(kCountRaw);
  if (bpf_ringbuf_output(ring, raw, size, BPF_RB_NO_WAKEUP)) {
    count(kCountRingFull);
    count(kCountStackLost);
    return 0;
  }
  return raw->id;
}

// Writes the walk in `w` as a record; 0 when that failed.
__noinline u32 emit_walk(struct walk* w) {
  if (!w) return 0;
  u32 which = w->which;
  void* ring = ring_here();
  u32 frames = w->count;
  if (!ring) return 0;
  count(kCountWalks);
  if (w->end != kEndComplete && w->end != kEndTooDeep) {
    w->is_cacheable = 0;
    w->flags |= kStackOnce;
    return emit_raw(w, 0);
  }
  if (!w->is_cacheable) w->flags |= kStackOnce;
  u32 id = new_id();
  w->stack.head.type = kRecordStack;
  w->stack.head.cpu = bpf_get_smp_processor_id();
  w->stack.head.time = w->now;
  w->stack.id = id;
  w->stack.tgid = w->tgid;
  w->stack.replaces = w->replaces;
  w->stack.count = frames;
  w->stack.end = w->end;
  w->stack.flags = w->flags;
  u32 size = __builtin_offsetof(struct stack_record, pcs) + frames * 8;
  asm volatile("" : "+r"(size));
  if (size > sizeof w->stack) return 0;
  w->stack.head.size = size;
  if (bpf_ringbuf_output(ring, &w->stack, size, BPF_RB_NO_WAKEUP)) {
    count(kCountRingFull);
    count(kCountStackLost);
    return 0;
  }
  if (truth_one_in) {
    struct raw_scratch* scratch = bpf_map_lookup_elem(&raws, &which);
    if (scratch && ++scratch->walks % truth_one_in == 0) emit_raw(w, id);
  }
  return id;
}

// The kernel's part of the stack; the id of an earlier record when it is `known` already.
static __always_inline u32 kernel_stack(void* ctx, struct walk* w, u64 known_hash, u32 known_id) {
  long bytes = bpf_get_stack(ctx, w->kernel.pcs, sizeof w->kernel.pcs, 0);
  void* ring = ring_here();
  if (bytes <= 0 || !ring) {
    w->hash = 0;
    return 0;
  }
  u32 frames = (u32)bytes / 8;
  u64 hash = 0;
  for (u32 i = 0; i < kKernelFrames; ++i) {
    if (i >= frames) break;
    hash = (hash ^ w->kernel.pcs[i]) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  w->hash = hash;
  if (known_id && hash == known_hash) return known_id;
  u32 id = new_id();
  w->kernel.head.type = kRecordKernel;
  w->kernel.head.cpu = bpf_get_smp_processor_id();
  w->kernel.head.time = w->now;
  w->kernel.id = id;
  w->kernel.replaces = known_id;
  w->kernel.count = frames;
  u32 size = __builtin_offsetof(struct kernel_record, pcs) + frames * 8;
  asm volatile("" : "+r"(size));
  if (size > sizeof w->kernel) return 0;
  w->kernel.head.size = size;
  if (bpf_ringbuf_output(ring, &w->kernel, size, BPF_RB_NO_WAKEUP)) {
    count(kCountRingFull);
    count(kCountStackLost);
    w->hash = 0;
    return 0;
  }
  return id;
}

// Whether all words that the way's walk read are unchanged.
__noinline bool still_holds(struct walk* w, struct way* way, u64 sp, u64 fp, u64 code) {
  if (!way || !w) return false;
  if (!way->is_used || way->code != code || (way->uses_fp && way->fp != fp)) return false;
  u32 span = way->span, words = way->words;
  asm volatile("" : "+r"(span));
  if (span == 0 || span > kWindowBytes) return false;
  if (bpf_probe_read_user(w->window, span, (void*)sp)) return false;
  u64 far = way->far;
  if (far && bpf_probe_read_user((u8*)w->window + kWindowBytes, kFarBytes, (void*)(sp + far)))
    return false;
  u64 different = 0;
  for (u32 i = 0; i < kMostWords; ++i) {
    if (i >= words) break;
    u32 at = way->at[i];
    MASK(at, 0x7ff);
    different |= w->window[at] ^ way->value[i];
  }
  return different == 0;
}

__noinline int keep(struct walk* w, struct way* way, u64 fp, u32 id) {
  if (!w || !way) return 0;
  way->code = w->code;
  way->fp = fp;
  way->hash = w->hash;
  way->uses_fp = w->uses_fp;
  way->user_stack = id;
  way->kernel_stack = 0;
  way->kernel_hash = 0;
  way->kernel_at = 0;
  way->hits = 0;
  way->span = w->span;
  way->far = w->far;
  way->words = w->words;
  for (u32 i = 0; i < kMostWords; ++i) {
    if (i >= w->words) break;
    way->at[i] = w->at[i];
    way->value[i] = w->value[i];
  }
  way->is_used = 1;
  return 0;
}

static __always_inline struct cache* cache_of(struct task_struct* task, struct thread* thread) {
  struct cache* cache = bpf_task_storage_get(&caches, task, 0, 0);
  if (cache || thread->has_cache) return cache;
  if (cache_count >= most_caches) {
    count(kCountNoCache);
    return 0;
  }
  cache = bpf_task_storage_get(&caches, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  thread->has_cache = cache ? kHasCache : kCacheRefused;
  if (cache)
    __sync_fetch_and_add(&cache_count, 1);
  else
    count(kCountNoCache);
  return cache;
}

// In check mode: compares a hit with a new walk.
static __always_inline void check_hit(struct walk* w, struct way* way, u64 ip, u64 sp, u64 fp) {
  walk_stack(w, ip, sp, fp, way->code);
  count(kCountChecked);
  if (w->hash != way->hash || w->end != kEndComplete) count(kCountWrong);
}

// The number of the way that matches; kWays when none does: then w->victim is the way to fill.
__noinline u32 find_way(struct walk* w, struct cache* cache, u32 key, u64 code) {
  if (!w || !cache) return kWays;
  u64 ip = w->ip, sp = w->base, fp = w->fp;
  u32 matching = 0;
#pragma unroll
  for (u32 i = 0; i < kWays; ++i) {
    if (cache->ip[i] == ip && cache->sp[i] == sp && cache->key[i] == key) matching |= 1 << i;
  }
  w->victim = cache->next & (kWays - 1);
  w->matching = matching;
  for (u32 attempt = 0; attempt < 2; ++attempt) {
    matching = w->matching;
    if (!matching) break;
    w->number = 0;
#pragma unroll
    for (u32 i = kWays; i-- > 0;)
      if (matching >> i & 1) w->number = i;
    w->matching = matching & (matching - 1);
    u32 number = w->number;
    MASK(number, 7);
    struct way* way = &cache->ways[number];
    if (still_holds(w, way, sp, fp, code)) return number;
    if (attempt == 1 || way->code != code) w->victim = number;
  }
  return kWays;
}
