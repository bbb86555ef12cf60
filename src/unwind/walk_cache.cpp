#include "unwind/walk_cache.h"

#include <algorithm>
#include <cstring>

#include "unwind/walker.h"

namespace assay::unwind {

namespace {

bool registers_agree(const Walk& walk, const model::UserRegisters& now) {
  for (uint32_t left = walk.registers_used; left != 0; left &= left - 1) {
    int reg = __builtin_ctz(left);
    if (!now.has(reg) || now.value[reg] != walk.registers.value[reg]) return false;
  }
  return true;
}

bool words_agree(const Walk& walk, std::span<const std::byte> copy) {
  if (copy.size() < walk.stack.copy_needed) return false;
  for (const StackWord& word : walk.words) {
    uint64_t value;
    std::memcpy(&value, copy.data() + word.offset, sizeof value);
    if (value != word.value) return false;
  }
  return true;
}

size_t bytes_of(const Walk& walk) {
  return walk.stack.frames.capacity() * sizeof(UserFrame) + walk.sps.capacity() * sizeof(uint64_t) +
         walk.words.capacity() * sizeof(StackWord);
}

// The frame of `walk` at stack pointer `sp`; its frame count when there is none. Stack pointers
// rise from frame to frame but at alternate signal stacks, hence no binary search.
size_t frame_at(const Walk& walk, uint64_t sp, uint64_t pc) {
  for (size_t i = 0; i < walk.sps.size(); ++i) {
    if (walk.sps[i] == sp && walk.stack.frames[i].pc == pc) return i;
  }
  return walk.sps.size();
}

}  // namespace

const Walk* WalkCache::find(const RawStack& raw, uint64_t code_version) {
  auto it = threads_.find(raw.tid);
  if (it == threads_.end()) return nullptr;
  Thread& thread = it->second;
  for (Walk& walk : thread.walks) {
    if (walk.code_version != code_version || walk.registers.ip() != raw.registers.ip() ||
        walk.registers.sp() != raw.registers.sp()) {
      continue;
    }
    // Only a whole walk depends on nothing but what it read; others also on where the copy ended.
    if (walk.stack.end != model::StackEnd::complete || walk.stack.joined) continue;
    if (!registers_agree(walk, raw.registers) || !words_agree(walk, raw.copy)) continue;
    thread.last_used = walk.last_used = ++clock_;
    return &walk;
  }
  return nullptr;
}

Walk& WalkCache::victim(pid_t tid) {
  Thread& thread = threads_[tid];
  thread.last_used = ++clock_;
  Walk& walk = *std::ranges::min_element(thread.walks, {}, &Walk::last_used);
  walk.clear();
  return walk;
}

bool WalkCache::join(pid_t tid, Walk& walk, uint64_t code_version) {
  auto it = threads_.find(tid);
  if (it == threads_.end() || walk.sps.size() < 2) return false;
  size_t last = walk.sps.size() - 1;
  const Walk* best = nullptr;
  size_t best_frame = 0;
  for (const Walk& other : it->second.walks) {
    if (&other == &walk || other.code_version != code_version) continue;
    if (other.stack.end != model::StackEnd::complete) continue;
    if (best && other.last_used < best->last_used) continue;
    size_t at = frame_at(other, walk.sps[last], walk.stack.frames[last].pc);
    if (at == 0 || at >= other.sps.size()) continue;
    if (other.sps[at - 1] != walk.sps[last - 1] ||
        other.stack.frames[at - 1].pc != walk.stack.frames[last - 1].pc) {
      continue;
    }
    best = &other;
    best_frame = at;
  }
  if (!best) return false;
  for (size_t i = best_frame + 1; i < best->sps.size(); ++i) {
    if (walk.sps.size() >= kMaxFrames) {
      walk.stack.end = model::StackEnd::too_deep;
      break;
    }
    walk.sps.push_back(best->sps[i]);
    walk.stack.frames.push_back(best->stack.frames[i]);
  }
  if (walk.stack.end != model::StackEnd::too_deep) walk.stack.end = model::StackEnd::complete;
  walk.stack.joined = true;
  walk.stack.used_frame_pointers |= best->stack.used_frame_pointers;
  return true;
}

void WalkCache::stored(pid_t tid, Walk& walk, uint64_t code_version) {
  Thread& thread = threads_[tid];
  walk.code_version = code_version;
  walk.last_used = ++clock_;
  size_t now = 0;
  for (const Walk& w : thread.walks) now += bytes_of(w);
  now += sizeof(Thread);
  bytes_ += now - thread.bytes;
  thread.bytes = now;
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
    threads_.erase(oldest);
  }
}

void WalkCache::forget(pid_t tid) {
  auto it = threads_.find(tid);
  if (it == threads_.end()) return;
  bytes_ -= it->second.bytes;
  threads_.erase(it);
}

}  // namespace assay::unwind
