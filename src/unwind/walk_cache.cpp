#include "unwind/walk_cache.h"

#include <algorithm>
#include <cstring>

namespace assay::unwind {

namespace {

bool registers_agree(const Walk& walk, const model::UserRegisters& now) {
  for (uint32_t left = walk.registers_used; left != 0; left &= left - 1) {
    int reg = __builtin_ctz(left);
    if (!now.has(reg) || now.value[reg] != walk.registers.value[reg]) return false;
  }
  return true;
}

uint64_t word_at(std::span<const std::byte> copy, uint64_t offset) {
  uint64_t value;
  std::memcpy(&value, copy.data() + offset, sizeof value);
  return value;
}

// Every offset was inside a copy of copy_needed bytes when it was walked.
bool words_agree(const Walk& walk, std::span<const std::byte> copy) {
  if (copy.size() < walk.stack.copy_needed) return false;
  uint64_t base = walk.registers.sp() + 8;
  size_t frame = 1;
  auto returns_agree_up_to = [&](size_t end) {
    for (; frame < end; ++frame) {
      if (word_at(copy, walk.sps[frame] - base) != walk.stack.frames[frame].pc) return false;
    }
    return true;
  };
  for (uint32_t odd : walk.odd) {
    if (!returns_agree_up_to(odd)) return false;
    frame = odd + 1;
  }
  if (!returns_agree_up_to(walk.sps.size())) return false;
  return std::ranges::all_of(
      walk.words, [&](const StackWord& word) { return word_at(copy, word.offset) == word.value; });
}

size_t bytes_of(const Walk& walk) {
  return walk.stack.frames.capacity() * sizeof(UserFrame) + walk.sps.capacity() * sizeof(uint64_t) +
         walk.words.capacity() * sizeof(StackWord) + walk.odd.capacity() * sizeof(uint32_t);
}

// The frame of `walk` at stack pointer `sp`; its frame count when there is none. Stack pointers
// rise from frame to frame but at alternate signal stacks, hence no binary search.
size_t frame_at(const Walk& walk, uint64_t sp, uint64_t pc) {
  for (size_t i = 0; i < walk.sps.size(); ++i) {
    if (walk.sps[i] == sp && walk.stack.frames[i].pc == pc) return i;
  }
  return walk.sps.size();
}

// Continues `walk` with the frames of `other` beyond `frame`.
void append_outer(Walk& walk, const Walk& other, size_t frame) {
  walk.stack.end = model::StackEnd::complete;
  for (size_t i = frame + 1; i < other.sps.size(); ++i) {
    if (walk.sps.size() >= kMaxFrames) {
      walk.stack.end = model::StackEnd::too_deep;
      break;
    }
    walk.sps.push_back(other.sps[i]);
    walk.stack.frames.push_back(other.stack.frames[i]);
  }
  walk.stack.joined = true;
  walk.is_exact = false;
  walk.stack.used_frame_pointers |= other.stack.used_frame_pointers;
}

// Whether the code that a signal interrupted is where a walk with these registers began.
bool began_there(const model::UserRegisters& interrupted, const model::UserRegisters& leaf) {
  constexpr uint64_t kSyscallBytes = 2;  // a call to be restarted has its pc put back before it
  if (interrupted.ip() != leaf.ip() && interrupted.ip() + kSyscallBytes != leaf.ip()) return false;
  for (uint32_t left = interrupted.known & ~(1u << model::kRegRip); left != 0; left &= left - 1) {
    int reg = __builtin_ctz(left);
    if (!leaf.has(reg) || leaf.value[reg] != interrupted.value[reg]) return false;
  }
  return true;
}

}  // namespace

WalkCache::Thread* WalkCache::known(pid_t tid) {
  if (tid == last_tid_) return last_thread_;
  auto it = threads_.find(tid);
  if (it == threads_.end()) return nullptr;
  last_tid_ = tid;
  return last_thread_ = &it->second;
}

const Walk* WalkCache::find(const RawStack& raw, uint32_t code_version) {
  Thread* thread = known(raw.tid);
  if (!thread || !raw.registers.has(model::kRegRip) || !raw.registers.has(model::kRegRsp)) {
    return nullptr;
  }
  for (size_t way = 0; way < kWays; ++way) {
    if (thread->ips[way] != raw.registers.ip() || thread->sps[way] != raw.registers.sp()) continue;
    Walk& walk = thread->walks[way];
    if (!walk.is_exact || walk.code_version != code_version) continue;
    if (!registers_agree(walk, raw.registers) || !words_agree(walk, raw.copy)) continue;
    thread->last_used = thread->last_used_at[way] = ++clock_;
    return &walk;
  }
  return nullptr;
}

Walk& WalkCache::victim(pid_t tid) {
  Thread* thread = known(tid);
  if (!thread) {
    thread = &threads_[tid];
    bytes_ += thread->bytes;
    last_tid_ = tid, last_thread_ = thread;
  }
  thread->last_used = ++clock_;
  auto oldest = std::ranges::min_element(thread->last_used_at);
  Walk& walk = thread->walks[static_cast<size_t>(oldest - thread->last_used_at.begin())];
  victim_bytes_ = bytes_of(walk);
  return walk;
}

bool WalkCache::join(pid_t tid, Walk& walk, uint32_t code_version) {
  Thread* thread = known(tid);
  if (!thread || walk.sps.size() < 2) return false;
  size_t last = walk.sps.size() - 1;
  const Walk* best = nullptr;
  size_t best_frame = 0;
  uint64_t best_time = 0;
  for (size_t way = 0; way < kWays; ++way) {
    const Walk& other = thread->walks[way];
    if (&other == &walk || other.code_version != code_version) continue;
    if (other.stack.end != model::StackEnd::complete || thread->last_used_at[way] < best_time)
      continue;
    size_t at = frame_at(other, walk.sps[last], walk.stack.frames[last].pc);
    if (at == 0 || at >= other.sps.size()) continue;
    if (other.sps[at - 1] != walk.sps[last - 1] ||
        other.stack.frames[at - 1].pc != walk.stack.frames[last - 1].pc) {
      continue;
    }
    best = &other;
    best_frame = at;
    best_time = thread->last_used_at[way];
  }
  if (!best) return false;
  append_outer(walk, *best, best_frame);
  return true;
}

bool WalkCache::join_interrupted(pid_t tid, Walk& walk, uint32_t code_version) {
  Thread* thread = known(tid);
  if (!thread || walk.interrupted.known == 0) return false;
  for (const Walk& other : thread->walks) {
    if (&other == &walk || other.code_version != code_version) continue;
    if (other.stack.end != model::StackEnd::complete || other.sps.empty()) continue;
    if (!began_there(walk.interrupted, other.registers)) continue;
    append_outer(walk, other, 0);
    return true;
  }
  return false;
}

void WalkCache::stored(pid_t tid, Walk& walk, uint32_t code_version) {
  Thread* thread = known(tid);
  auto way = static_cast<size_t>(&walk - thread->walks.data());
  thread->ips[way] = walk.registers.ip();
  thread->sps[way] = walk.registers.sp();
  walk.code_version = code_version;
  thread->last_used_at[way] = ++clock_;
  size_t grown = bytes_of(walk) - victim_bytes_;  // modulo 2^64 when it shrank
  thread->bytes += grown;
  bytes_ += grown;
  if (bytes_ > kMaxBytes) shrink(tid);
}

void WalkCache::shrink(pid_t keep) {
  while (bytes_ > kMaxBytes / 2 && threads_.size() > 1) {
    auto oldest = threads_.end();
    for (auto it = threads_.begin(); it != threads_.end(); ++it) {
      if (it->first == keep) continue;
      if (oldest == threads_.end() || it->second.last_used < oldest->second.last_used) oldest = it;
    }
    bytes_ -= oldest->second.bytes;
    if (oldest->first == last_tid_) last_tid_ = -1;
    threads_.erase(oldest);
  }
}

void WalkCache::forget(pid_t tid) {
  auto it = threads_.find(tid);
  if (it == threads_.end()) return;
  bytes_ -= it->second.bytes;
  if (tid == last_tid_) last_tid_ = -1;
  threads_.erase(it);
}

}  // namespace assay::unwind
