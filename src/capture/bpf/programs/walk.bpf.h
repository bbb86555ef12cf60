// Walking a user stack by the rows of src/unwind's tables (table_format.h), and by frame pointers
// where there are none. The rules are those of unwind::Walker; rules that do not fit into a row are
// left to it, with the registers and a copy of the stack (raw records).
#pragma once

#include "maps.bpf.h"

enum row_type { kRowSp, kRowFp, kRowEnd, kRowPlt, kRowSignal, kRowFpMemory, kRowNone, kRowFull };
enum fp_state { kFpLost, kFpSampled, kFpValue, kFpSlot };

#define UNMAPPED_ROW 0xffffffffu
#define NO_CFI_ROW (kRowNone << 8)
#define END_OF_NEW_THREAD 2
#define FP_SLOT_LOST 30

// Clang knows that a checked index is in bounds and removes the mask that the verifier needs.
#ifndef MASK
#define MASK(value, mask) asm volatile("%0 &= " #mask : "+r"(value))
#endif

static __always_inline void fill_window(struct walk* w, u64 need) {
  long failed;
  u32 bytes;
  if (w->no_window) return;
  if (need <= 512) {
    bytes = 512;
    failed = bpf_probe_read_user(w->window, 512, (void*)w->base);
  } else if (need <= 2048) {
    bytes = 2048;
    failed = bpf_probe_read_user(w->window, 2048, (void*)w->base);
  } else {
    bytes = kWindowBytes;
    failed = bpf_probe_read_user(w->window, kWindowBytes, (void*)w->base);
  }
  if (!failed)
    w->filled = bytes;
  else
    w->no_window = 1, w->filled = 0;
}

static __always_inline bool read_far(struct walk* w, u64 offset) {
  return !bpf_probe_read_user((u8*)w->window + kWindowBytes, kFarBytes, (void*)(w->base + offset));
}

// Where in the window the word at this offset from the stack pointer belongs; beyond the window
// when it is in neither half. The far half begins with the first word that the near one does not
// reach.
static __always_inline u64 place_of(struct walk* w, u64 offset) {
  if (offset <= kWindowBytes - 8) return offset;
  if (!w->far && offset < 1u << 24 && read_far(w, offset)) w->far = offset;
  return w->far && offset - w->far <= kFarBytes - 8 ? kWindowBytes + offset - w->far
                                                    : 2 * kWindowBytes;
}

// Whether the window contains the word at that place. Near the stack's end it may not, because
// whole windows cannot be read there.
static __always_inline bool is_filled(struct walk* w, u64 place) {
  if (place >= kWindowBytes) return place < 2 * kWindowBytes;
  if (place + 8 > w->filled) fill_window(w, place + 8);
  return place + 8 <= w->filled;
}

// Reads a word of the stack that the result depends on.
static __always_inline bool load(struct walk* w, u64 address, u64* value) {
  u64 place = place_of(w, address - w->base);
  bool is_aligned = (place & 7) == 0;
  if (is_aligned && is_filled(w, place)) {
    u64 at = place >> 3;
    MASK(at, 0x7ff);
    *value = w->window[at];
  } else if (bpf_probe_read_user(value, 8, (void*)address)) {
    w->end = kEndNoMemory;
    return false;
  }
  u32 n = w->words;
  if (n >= kMostWords || !is_aligned || place >= 2 * kWindowBytes) {
    w->is_cacheable = 0;
    return true;
  }
  asm volatile("" : "+r"(n));
  if (n < kMostWords) {
    w->at[n] = place >> 3;
    w->value[n] = *value;
    w->words = n + 1;
  }
  if (place < kWindowBytes && place + 8 > w->span) w->span = place + 8;
  return true;
}

// The first range that begins after the address, by binary search; only the range before it can
// contain the address.
__noinline bool find_range(struct walk* w, u64 address) {
  if (!w) return false;
  u32 first = w->code & 0xffffff;
  w->low = first;
  w->left = w->code >> 24 & 0xffff;
  for (int i = 0; i < 13; ++i) {
    u32 left = w->left, half = left >> 1, number = w->low + half;
    if (left == 0) break;
    struct range* range = bpf_map_lookup_elem(&ranges, &number);
    if (!range) return false;
    if (range->begin <= address) {
      w->low = number + 1;
      w->left = left - half - 1;
    } else {
      w->left = half;
    }
  }
  u32 number = w->low - 1;
  if (w->low == first) return false;
  struct range* range = bpf_map_lookup_elem(&ranges, &number);
  if (!range || address >= range->end) return false;
  w->range_begin = range->begin;
  w->range_bytes = range->end - range->begin;
  w->to_text = range->to_text;
  w->index_at = range->index_at;
  w->rows_at = range->rows_at;
  return true;
}

static __always_inline struct words* chunk_of(u32 word) {
  u32 number = word / kChunkWords, zero = 0;
  void* chunk = bpf_map_lookup_elem(&tables, &number);
  return chunk ? bpf_map_lookup_elem(chunk, &zero) : 0;
}

// The rule bits that hold at an address. A page's rows lie in one chunk and the first begins at or
// before the page does.
static __always_inline u32 row_at(struct walk* w, u64 address) {
  if (address - w->range_begin >= w->range_bytes && !find_range(w, address)) return UNMAPPED_ROW;
  if (!w->index_at) return NO_CFI_ROW;
  u64 text = address + w->to_text;
  u32 word = w->index_at + (u32)(text >> 8);
  u32 low = text & 0xff;
  struct words* chunk = chunk_of(word);
  if (!chunk) return UNMAPPED_ROW;
  MASK(word, 0xffff);
  u32 index = chunk->word[word];
  u32 rows = index & ((1 << kIndexCountBits) - 1);
  u32 at = w->rows_at + (index >> kIndexCountBits);
  chunk = chunk_of(at);
  if (!chunk) return UNMAPPED_ROW;
  MASK(at, 0xffff);
  u32 end = at + rows;
#pragma unroll
  for (u32 step = 128; step; step >>= 1) {
    u32 next = at + step;
    if (next >= end) continue;
    MASK(next, 0xffff);
    if ((chunk->word[next] & 0xff) <= low) at = next;
  }
  MASK(at, 0xffff);
  return chunk->word[at] & ~0xffu;
}

static __always_inline bool fetch_fp(struct walk* w, u64* fp) {
  if (w->fp_state == kFpLost) {
    w->end = kEndNoRegister;
    return false;
  }
  if (w->fp_state == kFpSlot) {
    u64 value = 0;
    if (!load(w, w->fp, &value)) return false;
    w->fp = value;
    w->fp_state = kFpValue;
  } else if (w->fp_state == kFpSampled) {
    w->uses_fp = 1;
  }
  *fp = w->fp;
  return true;
}

// 0: walk on; 1: the walk has ended.
static __always_inline long arrive(struct walk* w, u64 pc, u64 sp, bool is_return) {
  u32 n = w->count;
  asm volatile("" : "+r"(n));
  w->pc = pc;
  w->sp = sp;
  w->is_return = is_return;
  if (n >= kMostFrames) {
    w->end = kEndTooDeep;
    return 1;
  }
  w->stack.pcs[n] = is_return ? pc : pc | 1ull << kNotAReturn;
  w->hash = (w->hash ^ pc) * 0x9E3779B97F4A7C15ull;
  w->hash ^= w->hash >> 29;
  w->count = n + 1;
  return 0;
}

static __always_inline long stop(struct walk* w, u8 end) {
  w->end = end;
  return 1;
}

static __always_inline long step_signal(struct walk* w) {
  u64 pc = 0, sp = 0, at = w->sp;
  if (!load(w, at + 168, &pc) || !load(w, at + 160, &sp)) return 1;
  u32 n = w->count - 1;
  MASK(n, 0x1ff);
  w->stack.pcs[n] |= 1ull << kNotAReturn;  // the restorer is not a return address
  w->fp = at + 120;
  w->fp_state = kFpSlot;
  return arrive(w, pc, sp, false);
}

static __always_inline long step_frame_pointer(struct walk* w) {
  u64 fp = 0, pc = 0;
  if (!fetch_fp(w, &fp)) return 1;
  if (fp == 0 && w->is_return) {
    w->flags |= kStackFramePointers;
    return stop(w, kEndComplete);
  }
  if (fp < w->sp || (fp & 7)) return stop(w, kEndNoRule);
  if (!load(w, fp + 8, &pc)) return 1;
  if (pc == 0)
    return w->is_return ? (w->flags |= kStackFramePointers, stop(w, kEndComplete))
                        : stop(w, kEndNoRule);
  if (pc - 1 - w->range_begin >= w->range_bytes && !find_range(w, pc - 1))
    return stop(w, kEndUnmapped);
  w->flags |= kStackFramePointers;
  w->fp = fp;
  w->fp_state = kFpSlot;
  return arrive(w, pc, fp + 16, true);
}

static long step(u32 i, void* context) {
  struct walk* w = *(struct walk**)context;
  u64 fp = 0, cfa = 0, pc = 0;
  u32 row = row_at(w, w->pc - w->is_return);
  if (row == UNMAPPED_ROW) return stop(w, kEndUnmapped);
  u32 type = row >> 8 & 7, fp_slot = row >> 11 & 31, value = row >> 16;
  if (type == kRowSp) {
    cfa = w->sp + value * 8;
  } else if (type == kRowFp) {
    if (!fetch_fp(w, &fp)) return 1;
    cfa = fp + value * 8;
  } else if (type == kRowPlt) {
    cfa = w->sp + ((w->pc & 15) >= value ? 16 : 8);
  } else if (type == kRowEnd) {
    if (value != END_OF_NEW_THREAD) return stop(w, kEndComplete);
    if (!load(w, w->sp, &pc)) return 1;
    bool has_caller =
        pc != 0 && (pc - 1 - w->range_begin < w->range_bytes || find_range(w, pc - 1));
    if (!has_caller) return stop(w, kEndComplete);
    cfa = w->sp + 8;
  } else if (type == kRowSignal) {
    return step_signal(w);
  } else if (type == kRowFpMemory) {
    if (!fetch_fp(w, &fp)) return 1;
    if (!load(w, fp + (u64)((long)(short)value * 8), &cfa)) return 1;
  } else if (type == kRowNone) {
    return value ? stop(w, kEndNoRule) : step_frame_pointer(w);
  } else {
    return stop(w, kEndFullRule);
  }
  if (cfa <= w->sp) return stop(w, kEndBadMemory);
  if (!load(w, cfa - 8, &pc)) return 1;
  if (type == kRowFpMemory && fp_slot == 1) {
    w->fp = fp;
    w->fp_state = kFpSlot;
  } else if (type != kRowFpMemory && fp_slot >= 1 && fp_slot < FP_SLOT_LOST) {
    w->fp = cfa - 8 * (fp_slot + 1);
    w->fp_state = kFpSlot;
  } else if (fp_slot != 0) {
    w->fp_state = kFpLost;
  }
  if (pc == 0) return stop(w, kEndComplete);
  return arrive(w, pc, cfa, true);
}

// Walks from the registers given; the result is in `w`. A function that is not static is verified
// only once, however many callers it has.
__noinline int walk_stack(struct walk* w, u64 ip, u64 sp, u64 fp, u64 code) {
  struct walk* context = w;
  if (!w) return 0;
  w->base = sp;
  w->code = code;
  w->hash = 0;
  w->fp = fp;
  w->fp_state = kFpSampled;
  w->range_begin = w->range_bytes = 0;
  w->count = w->words = w->span = w->filled = w->far = 0;
  w->end = kEndComplete;
  w->flags = w->uses_fp = w->no_window = 0;
  w->is_cacheable = 1;
  arrive(w, ip, sp, false);
  if (code == 0) {
    w->end = kEndNoTables;
    return 0;
  }
  w->end = kEndTooDeep;
  bpf_loop(kMostFrames + 1, step, &context, 0);
  return 0;
}
