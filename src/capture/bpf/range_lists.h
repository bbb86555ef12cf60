// RangeLists: the mapped ranges of processes in one shared array; equal lists are stored once, as
// those of forked workers are.
//
// In: a process's ranges, sorted. Out: the word by which the programs find them (shared.h,
// process). A list without users is kept for a while before its place is reused: a program on
// another CPU may still be reading it. Threads: one owner. Failures: 0 when there is no room;
// ranges beyond kMostRangesOfOne of a process are left out, and stacks through them are walked by
// the reader.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include <sys/types.h>

#include "base/clock.h"
#include "capture/bpf/shared.h"

namespace assay::capture {

class RangeLists {
 public:
  explicit RangeLists(std::span<bpf::range> memory) : memory_(memory) { free_[0] = memory.size(); }

  // Gives `pid` these ranges. The word differs from all words before unless the ranges are the
  // same.
  uint64_t set(pid_t pid, std::span<const bpf::range> ranges, TimeNs now);
  void forget(pid_t pid, TimeNs now);
  uint64_t code_of(pid_t pid) const;
  size_t lists() const { return lists_.size(); }

 private:
  struct List {
    uint64_t first = 0, count = 0, code = 0;
    size_t users = 0;
    TimeNs unused_since = 0;
  };
  using Key = std::string;  // the ranges' bytes

  bool place(List& list);
  void release(const Key& key, TimeNs now);
  void collect(TimeNs now);

  std::span<bpf::range> memory_;
  std::map<uint64_t, uint64_t> free_;  // first → count
  std::unordered_map<Key, List> lists_;
  std::unordered_map<pid_t, Key> by_pid_;
  uint64_t version_ = 0;
};

}  // namespace assay::capture
