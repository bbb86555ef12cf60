// StackMemo: stacks that were seen before, by their addresses.
//
// Samples of a busy program repeat few stacks; finding one as a whole takes a fraction of the time
// of interning it frame by frame. In: a stack as words, whatever the caller makes of them. Out: the
// id that was kept for exactly these words. Bounded: it forgets all when it is full. Not
// thread-safe. Failures: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/ids.h"

namespace assay::session {

class StackMemo {
 public:
  // Null when it is not known. Valid until the next keep() or clear().
  const model::StackId* find(std::span<const uint64_t> words) {
    hash_ = hash_of(words);
    auto it = known_.find(hash_);
    if (it == known_.end() || !std::ranges::equal(it->second.words, words)) return nullptr;
    return &it->second.stack;
  }
  // Of the words that were last sought in vain.
  void keep(std::span<const uint64_t> words, model::StackId stack) {
    if (known_.size() >= kMost) known_.clear();
    known_.insert_or_assign(hash_, Known{{words.begin(), words.end()}, stack});
  }
  void clear() { known_.clear(); }

 private:
  static constexpr size_t kMost = 1 << 16;
  struct Known {
    std::vector<uint64_t> words;
    model::StackId stack;
  };
  static uint64_t hash_of(std::span<const uint64_t> words) {
    uint64_t hash = words.size();
    for (uint64_t word : words) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 32;
    }
    return hash;
  }

  uint64_t hash_ = 0;
  std::unordered_map<uint64_t, Known> known_;
};

}  // namespace assay::session
