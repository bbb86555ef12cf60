// run_sql: one read-only query over a run, with its samples and waits as tables.
//
// Beside the tables and views of the file (docs/run-format.md) a query may use
//   samples(time_s, time_ns, pid, tid, thread_id, thread, process, role, pool, cpu,
//           weight_ns, stack, leaf)
//   waits(time_s, start_ns, duration_ns, blocked_ns, runqueue_ns, pid, tid, thread_id, thread,
//         process, role, pool, stack, leaf, flags, syscall, syscall_name, arg, fd_kind, waker_tid,
//         waker_stack, owner_tid, wakeup_ns)
//   stack_text(stack)   'root;…;leaf' of a stack id; NULL when there is no such stack
//   frame_text(frame)   the name of a frame id
// time_s counts from the window's beginning. A bound on time_s, time_ns or start_ns skips blocks.
// A Selection leaves out of these tables the rows of other threads and other times; a wait that
// touches the time is whole. Of a Selection only threads and time are used.
// Nothing can be written, no other file attached and no extension loaded.
// Threads: calls are independent. Failures: those of Reader::open; a query that is wrong, writes,
// or is more than one; a damaged block met on the way (rows before it were delivered).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "run/selection/selection.h"

namespace assay::run {

using SqlValue = std::variant<std::monostate, int64_t, double, std::string,
                              std::vector<uint8_t>>;  // first: NULL

struct SqlSink {
  std::function<void(std::span<const std::string>)> columns;  // once, before any row
  std::function<bool(std::span<const SqlValue>)> row;         // false ends the query early
};

// The number of rows delivered.
Result<uint64_t> run_sql(const std::string& path, const std::string& query, const SqlSink& sink,
                         const Selection& selection = {});

}  // namespace assay::run
