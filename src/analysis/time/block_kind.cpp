#include "analysis/time/block_kind.h"

#include <array>

#include "analysis/kind_table.h"

namespace assay::analysis {
namespace {

using enum BlockKind;

constexpr std::optional<VerdictKind> kNoVerdict;

// Colours are told apart by lightness as well as hue (chosen by hand to stay apart for most
// colour-blind readers).
constexpr std::array<BlockKindRow, kBlockKindCount> kRows{{
    {lock, "lock", "lock", "locks", "lock", VerdictKind::lock, false, 0, "#c8401a", "#e8623a",
     "a mutex, rwlock, file lock or kernel lock",
     "futex below a lock function; `rwsem_down_*`, `flock`"},
    {condition, "condition", "condition", "other threads", "condition", kNoVerdict, true, 1,
     "#e58b6b", "#c98a72", "a condition variable, semaphore, barrier, join",
     "futex below such a function"},
    {futex, "futex", "futex", "other threads", "futex", kNoVerdict, true, 2, "#a8623f", "#b0714e",
     "a futex of unknown use", "`futex_wait*` or the system call"},
    {network_receive, "network_receive", "net receive", "answers from sockets", "receive",
     VerdictKind::downstream, true, 6, "#4fb99f", "#3f8f7c", "data or a connection",
     "`sk_wait_data`, `inet_csk_accept`, …"},
    {network_send, "network_send", "net send", "send buffers", "send", VerdictKind::network, false,
     5, "#0f8f73", "#1fa98a", "room in a send buffer", "`sk_stream_wait_memory`, …"},
    {disk, "disk", "disk", "disks", "disk", VerdictKind::disk, false, 3, "#7a5a1e", "#b08a3e",
     "a block device or file system", "`io_schedule`, `folio_wait_*`, `jbd2_*`, `fsync`"},
    {timer, "timer", "timer", "timers", "timer", VerdictKind::timer, true, 9, "#9b86b8", "#8d7bab",
     "a sleep of chosen length", "`hrtimer_nanosleep`, timerfd"},
    {poll, "poll", "poll", "answers from sockets", "poll", VerdictKind::downstream, true, 12,
     "#cfd8e3", "#3a4350", "any of several events", "epoll, poll, select, io_uring, eventfd"},
    {page_fault, "page_fault", "page fault", "page faults", "fault", kNoVerdict, false, 4,
     "#b59a35", "#cdb65a", "memory to be made or read back",
     "a fault handler anywhere in the stack"},
    {pipe, "pipe", "pipe", "something else", "pipe", VerdictKind::downstream, true, 7, "#8fd0bf",
     "#5c8f84", "a pipe's other end", "`pipe_read`, `pipe_write`"},
    {child, "child", "child process", "something else", "other_waits", kNoVerdict, true, 8,
     "#63808c", "#6f8b97", "another process's end", "`do_wait`"},
    {accelerator, "accelerator", "accelerator", "accelerators", "accelerator",
     VerdictKind::accelerator, false, 14, "#2f6fb0", "#5a93cf",
     "a GPU or another device that computes",
     "a vendor's library or its synchronisation calls, `dma_fence_*`, `kfd_*`, …"},
    {other, "other", "other", "something else", "other_waits", kNoVerdict, true, 10, "#8a8f98",
     "#7b818b", "something else", "a known function or call that is none of these"},
    {unknown, "unknown", "unknown", "something else", "other_waits", kNoVerdict, false, 11,
     "#b3b7bd", "#5d636d", "what no evidence tells", ""},
    {wakeup, "wakeup", "wake-up", "wake-ups", "wakeup", kNoVerdict, false, 13, "#d3c25e", "#a1933f",
     "the CPU that it was given to: an interrupt, the way out of idle",
     "from the wake-up until the kernel counts it on a run queue"},
}};
static_assert(is_complete(kRows, kBlockKindCount));

}  // namespace

std::span<const BlockKindRow> block_kinds() {
  return kRows;
}

const BlockKindRow& describe(BlockKind kind) {
  return row_of(kRows, kind);
}

std::optional<BlockKind> block_kind_of(std::string_view id) {
  return kind_with_id(kRows, id);
}

}  // namespace assay::analysis
