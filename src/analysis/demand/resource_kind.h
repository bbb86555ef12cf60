// ResourceKind: what a request needs and may have to wait for. Pure; never fails.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/kind_table.h"
#include "analysis/time/block_kind.h"

namespace assay::analysis {

enum class ResourceKind : uint8_t {
  cpus,
  threads,  // of one pool: work waits until one of them is free
  lock,
  disk,
  downstream,  // another server's answer, or any event that is waited for while work is open
  network,     // room in send buffers
  timer,
  accelerator,
  other,
};
inline constexpr int kResourceKinds = static_cast<int>(ResourceKind::other) + 1;

struct ResourceKindRow {
  ResourceKind kind;
  std::string_view id;    // in JSON
  std::string_view name;  // for people, where it has no name of its own
};

inline constexpr std::array<ResourceKindRow, kResourceKinds> kResourceKindRows{{
    {ResourceKind::cpus, "cpus", "CPUs"},
    {ResourceKind::threads, "threads", "threads"},
    {ResourceKind::lock, "lock", "lock"},
    {ResourceKind::disk, "disk", "disks"},
    {ResourceKind::downstream, "downstream", "answers of others"},
    {ResourceKind::network, "network", "send buffers"},
    {ResourceKind::timer, "timer", "sleeps"},
    {ResourceKind::accelerator, "accelerator", "accelerators"},
    {ResourceKind::other, "other", "other waits"},
}};
static_assert(is_complete(kResourceKindRows, kResourceKinds));

inline const ResourceKindRow& describe(ResourceKind kind) {
  return row_of(kResourceKindRows, kind);
}

// What a wait of this kind needs; absent: another thread of the target, which is a pool of its own,
// or nothing but a CPU.
constexpr std::optional<ResourceKind> resource_of(BlockKind kind) {
  switch (kind) {
    case BlockKind::lock:
      return ResourceKind::lock;
    case BlockKind::network_receive:
    case BlockKind::poll:
    case BlockKind::pipe:
      return ResourceKind::downstream;
    case BlockKind::network_send:
      return ResourceKind::network;
    case BlockKind::disk:
      return ResourceKind::disk;
    case BlockKind::timer:
      return ResourceKind::timer;
    case BlockKind::accelerator:
      return ResourceKind::accelerator;
    case BlockKind::page_fault:
    case BlockKind::child:
    case BlockKind::other:
    case BlockKind::unknown:
      return ResourceKind::other;
    case BlockKind::condition:
    case BlockKind::futex:
    case BlockKind::wakeup:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace assay::analysis
