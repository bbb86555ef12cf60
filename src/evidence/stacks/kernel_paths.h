// KernelPaths: where in the kernel a user stack was last seen to block.
//
// On servers that switch very often the kernel's part of the stack is taken only in a part of the
// time (StackPolicy); in the rest a wait gets the path that the same user stack took last, so that
// over time the paths appear as often as they occur. Bounded memory. Threads: the consumer's.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/ids.h"

namespace assay::evidence {

class KernelPaths {
 public:
  void learn(model::StackId user_stack, std::span<const uint64_t> chain) {
    if (paths_.size() >= kMostPaths) paths_.clear();
    paths_[user_stack].assign(chain.begin(), chain.end());
  }
  // Empty when the stack was never seen with its kernel part.
  std::span<const uint64_t> recall(model::StackId user_stack) const {
    auto it = paths_.find(user_stack);
    return it == paths_.end() ? std::span<const uint64_t>() : it->second;
  }

 private:
  static constexpr size_t kMostPaths = 50'000;
  std::unordered_map<model::StackId, std::vector<uint64_t>> paths_;
};

}  // namespace assay::evidence
