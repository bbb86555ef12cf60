#include "lab/replica/descriptors.h"

#include <ctime>
#include <functional>

#include "lab/common/keep.h"

namespace lab::replica {

CommandDescriptor::CommandDescriptor(long blocks) {
  for (long i = 0; i < blocks; ++i) {
    parts.push_back(std::make_unique<std::string>(static_cast<size_t>(24 + i * 29 % 500), 'd'));
  }
}

Descriptors::Descriptors(const Options& options)
    : work_(options.number("descriptor-work")),
      pause_us_(options.number("pause-us")),
      lock_percent_(options.fault("lock")),
      blocks_(options.fault("alloc")) {}

static std::string key_of(uint64_t client, uint64_t seq) {
  return std::to_string(client) + "/" + std::to_string(seq);
}

Descriptors::Shard& Descriptors::shard_of(const std::string& key) {
  return shards_[std::hash<std::string>()(key) % shards_.size()];
}

// The useful work for a descriptor.
[[gnu::noinline]] uint64_t Descriptors::sequence_command(const std::string& key, long steps) const {
  uint64_t digest = 0xcbf29ce484222325ull;
  size_t at = 0;
  for (long i = 0; i < steps; ++i) {
    digest = (digest ^ static_cast<unsigned char>(key[at])) * 0x100000001b3ull;
    if (++at == key.size()) at = 0;
  }
  return digest;
}

[[gnu::noinline]] void Descriptors::wait_for_sequencer(long pause_us) const {
  timespec pause{pause_us / 1'000'000, pause_us % 1'000'000 * 1000};
  nanosleep(&pause, nullptr);
}

void Descriptors::add(uint64_t client, uint64_t seq) {
  std::string key = key_of(client, seq);
  if (lock_percent_ > 0) return add_under_one_lock(key);
  auto descriptor = std::make_unique<CommandDescriptor>(blocks_);
  descriptor->digest = sequence_command(key, work_);
  if (pause_us_ > 0) wait_for_sequencer(pause_us_);
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  shard.map[key] = std::move(descriptor);
}

[[gnu::noinline]] void Descriptors::add_under_one_lock(const std::string& key) {
  auto descriptor = std::make_unique<CommandDescriptor>(blocks_);
  long inside = work_ * lock_percent_ / 100, pause_inside = pause_us_ * lock_percent_ / 100;
  descriptor->digest = sequence_command(key, work_ - inside);
  if (pause_us_ > pause_inside) wait_for_sequencer(pause_us_ - pause_inside);
  std::lock_guard lock(descriptor_map_mutex_);
  descriptor->digest ^= sequence_command(key, inside);
  if (pause_inside > 0) wait_for_sequencer(pause_inside);
  shards_[0].map[key] = std::move(descriptor);
}

void Descriptors::remove(uint64_t client, uint64_t seq) {
  std::string key = key_of(client, seq);
  Shard& shard = lock_percent_ > 0 ? shards_[0] : shard_of(key);
  std::lock_guard lock(lock_percent_ > 0 ? descriptor_map_mutex_ : shard.mutex);
  shard.map.erase(key);
}

}  // namespace lab::replica
