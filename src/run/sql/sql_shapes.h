// The tables of `assay sql`: the declaration of each and the content of its columns.
//
// The first two columns of each are its time in seconds since the window began and in ns: bounds on
// them skip blocks. Included by sql_tables.cpp alone.
#pragma once

#include <string_view>

#include "model/syscalls.h"
#include "model/time/wait_pieces.h"
#include "run/blocks/byte_stream.h"
#include "run/names.h"
#include "run/sql/sql_tables.h"

namespace assay::run {

inline void give(sqlite3_context* out, int64_t value) {
  sqlite3_result_int64(out, value);
}
inline void give(sqlite3_context* out, std::string_view text) {
  sqlite3_result_text64(out, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}
// NULL where the value is unknown.
inline void give_or_null(sqlite3_context* out, std::string_view text) {
  if (!text.empty()) give(out, text);
}
inline void give_seconds(sqlite3_context* out, const Contents& contents, TimeNs time) {
  sqlite3_result_double(
      out, static_cast<double>(wrapping_sub(time, contents.info.window_begin_ns)) / 1e9);
}
inline void give_leaf(sqlite3_context* out, const Contents& contents, model::StackId stack) {
  if (stack.value != 0) give(out, frame_name(contents, contents.stacks[stack.value].frame));
}

// The columns pid, tid, thread_id, thread, process, role, pool, which every table has in a row.
inline bool is_thread_column(int column, int first) {
  constexpr int kThreadColumns = 7;
  return column >= first && column < first + kThreadColumns;
}

inline void give_thread(sqlite3_context* out, const Contents& contents, model::ThreadId id,
                        int which) {
  const model::Thread& thread = contents.threads[id.value];
  const model::Process& process = contents.processes[thread.process.value];
  switch (which) {
    case 0:
      return give(out, process.pid);
    case 1:
      return give(out, thread.tid);
    case 2:
      return give(out, id.value);
    case 3:
      return give(out, thread.name);
    case 4:
      return give(out, process.comm);
    case 5:
      return give(out, process.role);
    default:
      return give(out, thread.pool);
  }
}

// Shape<Row>: a table's declaration, the columns whose bounds skip blocks, and its cells.
template <class Row>
struct Shape;

template <>
struct Shape<model::Sample> {
  static constexpr const char* kName = "samples";
  static constexpr const char* kDeclaration =
      "CREATE TABLE x(time_s REAL, time_ns INTEGER, pid INTEGER, tid INTEGER, thread_id INTEGER, "
      "thread TEXT, process TEXT, role TEXT, pool TEXT, cpu INTEGER, weight_ns INTEGER, "
      "stack INTEGER, leaf TEXT)";

  static void cell(sqlite3_context* out, const SqlSource& source, const model::Sample& row,
                   int column) {
    const Contents& contents = source.contents;
    if (is_thread_column(column, 2)) return give_thread(out, contents, row.thread, column - 2);
    switch (column) {
      case 0:
        return give_seconds(out, contents, row.time);
      case 1:
        return give(out, row.time);
      case 9:
        return give(out, row.cpu);
      case 10:
        return give(out, row.weight_ns);
      case 11:
        return give(out, row.stack.value);
      case 12:
        return give_leaf(out, contents, row.stack);
    }
  }
};

template <>
struct Shape<model::Wait> {
  static constexpr const char* kName = "waits";
  static constexpr const char* kDeclaration =
      "CREATE TABLE x(time_s REAL, start_ns INTEGER, duration_ns INTEGER, blocked_ns INTEGER, "
      "runqueue_ns INTEGER, pid INTEGER, tid INTEGER, thread_id INTEGER, thread TEXT, "
      "process TEXT, role TEXT, pool TEXT, stack INTEGER, leaf TEXT, flags TEXT, "
      "syscall INTEGER, syscall_name TEXT, arg INTEGER, fd_kind TEXT, waker_tid INTEGER, "
      "waker_stack INTEGER, owner_tid INTEGER, wakeup_ns INTEGER)";

  static void cell(sqlite3_context* out, const SqlSource& source, const model::Wait& row,
                   int column) {
    const Contents& contents = source.contents;
    bool in_syscall = row.syscall != model::kNoSyscall;
    if (is_thread_column(column, 5)) return give_thread(out, contents, row.thread, column - 5);
    switch (column) {
      case 0:
        return give_seconds(out, contents, row.start);
      case 1:
        return give(out, row.start);
      case 2:
        return give(out, row.duration_ns);
      case 3:
        return give(out, model::WaitPieces(row).ns(model::WaitState::blocked));
      case 4:
        return give(out, model::WaitPieces(row).ns(model::WaitState::runqueue));
      case 12:
        return give(out, row.stack.value);
      case 13:
        return give_leaf(out, contents, row.stack);
      case 14:
        return give(out, wait_flags_text(row.flags));
      case 15:
        return in_syscall ? give(out, row.syscall) : void();
      case 16:
        return in_syscall ? give_or_null(out, model::syscall_name(row.syscall)) : void();
      case 17:
        return give(out, static_cast<int64_t>(row.arg));
      case 18:
        return give_or_null(out, fd_kind_name(row.fd_kind));
      case 19:
        return row.waker == model::Wait::kNoWaker
                   ? void()
                   : give(out, contents.threads[row.waker.value].tid);
      case 20:
        return row.waker_stack.value == 0 ? void() : give(out, row.waker_stack.value);
      case 21:
        return row.owner == model::Wait::kNoOwner
                   ? void()
                   : give(out, contents.threads[row.owner.value].tid);
      case 22:
        return give(out, model::WaitPieces(row).ns(model::WaitState::wakeup));
    }
  }
};

template <>
struct Shape<model::HeapAlloc> {
  static constexpr const char* kName = "heap";
  static constexpr const char* kDeclaration =
      "CREATE TABLE x(time_s REAL, time_ns INTEGER, pid INTEGER, tid INTEGER, thread_id INTEGER, "
      "thread TEXT, process TEXT, role TEXT, pool TEXT, size INTEGER, function TEXT, "
      "rate INTEGER, weight REAL, bytes REAL, freed_ns INTEGER, lifetime_ns INTEGER, "
      "stack INTEGER, site TEXT, id INTEGER)";

  static void cell(sqlite3_context* out, const SqlSource& source, const model::HeapAlloc& row,
                   int column) {
    const Contents& contents = source.contents;
    auto end = source.heap_ends.find(row.id);
    bool freed = end != source.heap_ends.end();
    if (is_thread_column(column, 2)) return give_thread(out, contents, row.thread, column - 2);
    switch (column) {
      case 0:
        return give_seconds(out, contents, row.time);
      case 1:
        return give(out, row.time);
      case 9:
        return give(out, static_cast<int64_t>(row.size_bytes));
      case 10:
        return give(out, std::string_view(model::heap_function_name(row.function)));
      case 11:
        return give(out, static_cast<int64_t>(row.rate_bytes));
      case 12:
        return sqlite3_result_double(out, row.weight());
      case 13:
        return sqlite3_result_double(out, row.weight() * static_cast<double>(row.size_bytes));
      case 14:
        return freed ? give(out, end->second) : void();
      case 15:
        return freed ? give(out, wrapping_sub(end->second, row.time)) : void();
      case 16:
        return give(out, row.stack.value);
      case 17:
        return give_or_null(out, allocation_site(contents, row.stack));
      case 18:
        return give(out, static_cast<int64_t>(row.id));
    }
  }
};

}  // namespace assay::run
