// BlockKind: what a blocked thread waits for, with everything that follows from the kind alone.
//
// The table is in block_kind.cpp: names, the number that holds its share, the verdict that it leads
// to, how the page shows it. The schema of the JSON report, the tables in docs/ and the page's
// constants are written from it by scripts/write-tables. How a wait's kind is told is wait_kind.h's
// matter. Pure; never fails.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "analysis/verdict/verdict_kind.h"

namespace assay::analysis {

enum class BlockKind : uint8_t {
  lock,             // a mutex, rwlock or file lock held by another
  condition,        // a condition variable, semaphore, barrier or join
  futex,            // a futex of unknown use
  network_receive,  // data or a connection from a socket
  network_send,     // room in a socket's send buffer
  disk,
  timer,  // a sleep of chosen length
  poll,   // epoll, poll, select, io_uring: any of several events
  page_fault,
  pipe,
  child,        // another process's end
  accelerator,  // a GPU or another device that computes
  other,        // known, but none of these
  unknown,      // no evidence
  wakeup,       // nothing any more: woken, and not yet on a run queue
};
inline constexpr int kBlockKindCount = static_cast<int>(BlockKind::wakeup) + 1;

struct BlockKindRow {
  BlockKind kind;
  std::string_view id;     // "network_receive": for programs
  std::string_view name;   // "net receive": for people
  std::string_view group;  // what a sentence about the largest parts of busy time calls it
  std::string_view vital;  // the number (vital.h) that its share of busy time is part of
  std::optional<VerdictKind> verdict;  // what much of it means
  bool can_be_idle;                    // it may be a wait for work
  uint8_t page_order;                  // of bars and legends on the page, among wait kinds
  std::string_view light, dark;        // its colour on the page
  std::string_view waits_for;          // for docs/
  std::string_view told_from;          // for docs/
};

std::span<const BlockKindRow> block_kinds();
const BlockKindRow& describe(BlockKind kind);
std::optional<BlockKind> block_kind_of(std::string_view id);

inline std::string_view block_kind_id(BlockKind kind) {
  return describe(kind).id;
}
inline std::string_view block_kind_name(BlockKind kind) {
  return describe(kind).name;
}

}  // namespace assay::analysis
