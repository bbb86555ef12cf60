#include "capture/bpf/range_lists.h"

#include <algorithm>

namespace assay::capture {
namespace {

constexpr TimeNs kGraceNs = kNsPerSecond;
constexpr uint64_t kVersionMask = 0xffffff;

}  // namespace

uint64_t RangeLists::set(pid_t pid, std::span<const bpf::range> ranges, TimeNs now) {
  ranges = ranges.first(std::min<size_t>(ranges.size(), bpf::kMostRangesOfOne));
  Key key(reinterpret_cast<const char*>(ranges.data()), ranges.size_bytes());
  auto mine = by_pid_.find(pid);
  if (mine != by_pid_.end() && mine->second == key) return lists_[key].code;
  collect(now);
  auto [it, added] = lists_.try_emplace(key);
  List& list = it->second;
  if (added) {
    list.count = ranges.size();
    if (!place(list)) {
      lists_.erase(it);
      return 0;
    }
    std::ranges::copy(ranges, memory_.begin() + static_cast<ptrdiff_t>(list.first));
    version_ = (version_ + 1) & kVersionMask;
    version_ += version_ == 0;  // so that no word is 0
    list.code = list.first | list.count << 24 | version_ << 40;
  }
  ++list.users;
  uint64_t code = list.code;
  if (mine != by_pid_.end()) release(mine->second, now);
  by_pid_[pid] = std::move(key);
  return code;
}

uint64_t RangeLists::code_of(pid_t pid) const {
  auto mine = by_pid_.find(pid);
  return mine == by_pid_.end() ? 0 : lists_.at(mine->second).code;
}

void RangeLists::forget(pid_t pid, TimeNs now) {
  auto mine = by_pid_.find(pid);
  if (mine == by_pid_.end()) return;
  release(mine->second, now);
  by_pid_.erase(mine);
}

bool RangeLists::place(List& list) {
  uint64_t count = std::max<uint64_t>(1, list.count);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    auto [first, room] = *it;
    if (room < count) continue;
    free_.erase(it);
    if (room > count) free_[first + count] = room - count;
    list.first = first;
    return true;
  }
  return false;
}

void RangeLists::release(const Key& key, TimeNs now) {
  List& list = lists_.at(key);
  if (--list.users == 0) list.unused_since = now;
}

void RangeLists::collect(TimeNs now) {
  for (auto it = lists_.begin(); it != lists_.end();) {
    const List& list = it->second;
    if (list.users > 0 || now - list.unused_since < kGraceNs) {
      ++it;
      continue;
    }
    auto [free, added] = free_.emplace(list.first, std::max<uint64_t>(1, list.count));
    auto next = std::next(free);
    if (next != free_.end() && free->first + free->second == next->first) {
      free->second += next->second;
      free_.erase(next);
    }
    if (free != free_.begin()) {
      auto previous = std::prev(free);
      if (previous->first + previous->second == free->first) {
        previous->second += free->second;
        free_.erase(free);
      }
    }
    it = lists_.erase(it);
  }
}

}  // namespace assay::capture
