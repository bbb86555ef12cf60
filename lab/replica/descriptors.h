// Descriptors: one record per open command, from its arrival to its reply.
//
// Sixty-four shards, each with its lock; the fault `lock` puts them under one lock, which is then
// held for a share of the work (and of the pause, where one is asked for) that making a descriptor
// takes. The fault `alloc` makes every descriptor own so many small blocks. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "lab/common/options.h"

namespace lab::replica {

struct CommandDescriptor {
  [[gnu::noinline]] explicit CommandDescriptor(long blocks);
  uint64_t digest = 0;
  std::vector<std::unique_ptr<std::string>> parts;
};

class Descriptors {
 public:
  explicit Descriptors(const Options& options);

  void add(uint64_t client, uint64_t seq);
  void remove(uint64_t client, uint64_t seq);

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<CommandDescriptor>> map;  // guarded by mutex
  };
  Shard& shard_of(const std::string& key);
  uint64_t sequence_command(const std::string& key, long steps) const;
  void wait_for_sequencer(long pause_us) const;
  void add_under_one_lock(const std::string& key);

  const long work_, pause_us_, lock_percent_, blocks_;
  std::mutex descriptor_map_mutex_;  // the fault's one lock
  std::array<Shard, 64> shards_;
};

}  // namespace lab::replica
