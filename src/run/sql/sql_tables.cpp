#include "run/sql/sql_tables.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "run/blocks/block_stream.h"
#include "run/names.h"
#include "run/sql/sql_shapes.h"

namespace assay::run {
namespace {

constexpr int kSecondsColumn = 0;  // in both tables
constexpr int kNsColumn = 1;

struct Table : sqlite3_vtab {
  const SqlSource* source = nullptr;

  int say(const Error& error) {
    sqlite3_free(zErrMsg);
    zErrMsg = sqlite3_mprintf("%s", error.what.c_str());
    return SQLITE_ERROR;
  }
};

template <class Row>
struct Cursor : sqlite3_vtab_cursor {
  explicit Cursor(const SqlSource& source) : blocks(source.database, source.contents) {}
  Table& table() { return *static_cast<Table*>(pVtab); }
  bool has_thread(model::ThreadId thread) {
    const std::vector<bool>& threads = table().source->threads;
    return threads.empty() || threads[thread.value];
  }

  // Moves to the next row in range, over as many blocks as that takes.
  int advance() {
    while (true) {
      while (++index < blocks.rows().size()) {
        const Row& row = blocks.rows()[index];
        if (in_range(row, range) && has_thread(row.thread)) {
          ++row_number;
          return SQLITE_OK;
        }
      }
      auto more = blocks.next();
      if (!more) return table().say(more.error());
      if (!*more) {
        at_end = true;
        return SQLITE_OK;
      }
      index = static_cast<size_t>(-1);
    }
  }

  BlockStream<Row> blocks;
  TimeRange range;
  size_t index = 0;
  int64_t row_number = 0;
  bool at_end = false;
};

// A bound's value in ns, rounded outwards: SQLite checks each row again, so a range may be too
// wide.
bool bound_ns(sqlite3_value* value, bool seconds, const Contents& contents, bool upper,
              TimeNs& out) {
  int type = sqlite3_value_numeric_type(value);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return false;
  if (!seconds && type == SQLITE_INTEGER) {
    out = sqlite3_value_int64(value);
    return true;
  }
  double ns = sqlite3_value_double(value) * (seconds ? 1e9 : 1);
  // Doubles carry 53 bits: a microsecond covers their error for any window.
  ns += (upper ? 1e3 : -1e3) + (seconds ? static_cast<double>(contents.info.window_begin_ns) : 0);
  if (!(std::abs(ns) < 9e18)) return false;
  out = static_cast<TimeNs>(ns);
  return true;
}

bool is_time_bound(const sqlite3_index_info::sqlite3_index_constraint& constraint) {
  bool on_time = constraint.iColumn == kSecondsColumn || constraint.iColumn == kNsColumn;
  bool bound =
      constraint.op == SQLITE_INDEX_CONSTRAINT_EQ || constraint.op == SQLITE_INDEX_CONSTRAINT_GT ||
      constraint.op == SQLITE_INDEX_CONSTRAINT_GE || constraint.op == SQLITE_INDEX_CONSTRAINT_LT ||
      constraint.op == SQLITE_INDEX_CONSTRAINT_LE;
  return constraint.usable && on_time && bound;
}

// idxStr carries two characters a bound, in the order of the arguments: column, then < > or =.
int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
  std::string plan;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (!is_time_bound(constraint)) continue;
    bool lower =
        constraint.op == SQLITE_INDEX_CONSTRAINT_GT || constraint.op == SQLITE_INDEX_CONSTRAINT_GE;
    plan += constraint.iColumn == kSecondsColumn ? 's' : 'n';
    plan += constraint.op == SQLITE_INDEX_CONSTRAINT_EQ ? '=' : lower ? '>' : '<';
    info->aConstraintUsage[i].argvIndex = static_cast<int>(plan.size() / 2);
  }
  info->estimatedCost = 1e7 / static_cast<double>(1 + plan.size() * 50);
  info->estimatedRows = static_cast<sqlite3_int64>(info->estimatedCost);
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

// When each sampled allocation was freed: once, for the first query that asks.
Result<void> load_heap_ends(const SqlSource& source) {
  if (source.heap_ends_loaded) return {};
  BlockStream<model::HeapFree> frees(source.database, source.contents);
  if (auto started = frees.start({}); !started) return started;
  while (true) {
    auto more = frees.next();
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    for (const model::HeapFree& row : frees.rows()) source.heap_ends.try_emplace(row.id, row.time);
  }
  source.heap_ends_loaded = true;
  return {};
}

template <class Row>
int connect(sqlite3* handle, void* source, int, const char* const*, sqlite3_vtab** out,
            char** error) {
  int code = sqlite3_declare_vtab(handle, Shape<Row>::kDeclaration);
  if (code != SQLITE_OK) {
    *error = sqlite3_mprintf("%s", sqlite3_errmsg(handle));
    return code;
  }
  auto table = std::make_unique<Table>();
  table->source = static_cast<const SqlSource*>(source);
  *out = table.release();
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

template <class Row>
int open(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  *out = new Cursor<Row>(*static_cast<Table*>(table)->source);
  return SQLITE_OK;
}

template <class Row>
int close(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor<Row>*>(cursor);
  return SQLITE_OK;
}

template <class Row>
int filter(sqlite3_vtab_cursor* base, int, const char* plan, int count, sqlite3_value** values) {
  auto& cursor = *static_cast<Cursor<Row>*>(base);
  cursor.range = cursor.table().source->time;
  for (int i = 0; i < count; ++i) {
    bool seconds = plan[2 * i] == 's';
    char op = plan[2 * i + 1];
    TimeNs ns = 0;
    const Contents& contents = cursor.table().source->contents;
    if (op != '<' && bound_ns(values[i], seconds, contents, false, ns)) {
      cursor.range.begin_ns = std::max(cursor.range.begin_ns, ns);
    }
    if (op != '>' && bound_ns(values[i], seconds, contents, true, ns) && ns < INT64_MAX) {
      cursor.range.end_ns = std::min(cursor.range.end_ns, ns + 1);  // the range excludes its end
    }
  }
  if constexpr (std::is_same_v<Row, model::HeapAlloc>) {
    if (auto loaded = load_heap_ends(*cursor.table().source); !loaded)
      return cursor.table().say(loaded.error());
  }
  if (auto started = cursor.blocks.start(cursor.range); !started) {
    return cursor.table().say(started.error());
  }
  cursor.index = static_cast<size_t>(-1);
  cursor.row_number = 0;
  cursor.at_end = false;
  return cursor.advance();
}

template <class Row>
int next(sqlite3_vtab_cursor* cursor) {
  return static_cast<Cursor<Row>*>(cursor)->advance();
}

template <class Row>
int eof(sqlite3_vtab_cursor* cursor) {
  return static_cast<Cursor<Row>*>(cursor)->at_end;
}

template <class Row>
int column(sqlite3_vtab_cursor* base, sqlite3_context* out, int number) {
  auto& cursor = *static_cast<Cursor<Row>*>(base);
  Shape<Row>::cell(out, *cursor.table().source, cursor.blocks.rows()[cursor.index], number);
  return SQLITE_OK;
}

template <class Row>
int rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<Cursor<Row>*>(cursor)->row_number;
  return SQLITE_OK;
}

// Without xCreate the table is eponymous: it exists by its name alone and cannot be created.
template <class Row>
const sqlite3_module* module_of() {
  static const sqlite3_module module = [] {
    sqlite3_module m{};
    m.xConnect = connect<Row>;
    m.xBestIndex = best_index;
    m.xDisconnect = disconnect;
    m.xOpen = open<Row>;
    m.xClose = close<Row>;
    m.xFilter = filter<Row>;
    m.xNext = next<Row>;
    m.xEof = eof<Row>;
    m.xColumn = column<Row>;
    m.xRowid = rowid<Row>;
    return m;
  }();
  return &module;
}

// An id argument in [0, limit); false gives NULL.
bool id_argument(sqlite3_value* value, size_t limit, uint32_t& out) {
  if (sqlite3_value_type(value) != SQLITE_INTEGER) return false;
  uint64_t id = static_cast<uint64_t>(sqlite3_value_int64(value));
  if (id >= limit) return false;
  out = static_cast<uint32_t>(id);
  return true;
}

void stack_text_function(sqlite3_context* out, int, sqlite3_value** values) {
  const Contents& contents = static_cast<const SqlSource*>(sqlite3_user_data(out))->contents;
  uint32_t id = 0;
  if (!id_argument(values[0], contents.stacks.size(), id)) return;
  give(out, stack_text(contents, {id}));
}

void frame_text_function(sqlite3_context* out, int, sqlite3_value** values) {
  const Contents& contents = static_cast<const SqlSource*>(sqlite3_user_data(out))->contents;
  uint32_t id = 0;
  if (!id_argument(values[0], contents.frames.size(), id)) return;
  give(out, frame_name(contents, {id}));
}

}  // namespace

Result<void> register_sql_tables(const SqlSource& source) {
  sqlite3* handle = source.database.handle();
  void* data = const_cast<SqlSource*>(&source);  // SQLite hands it back as it came
  int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  for (int code :
       {sqlite3_create_module(handle, Shape<model::Sample>::kName, module_of<model::Sample>(),
                              data),
        sqlite3_create_module(handle, Shape<model::Wait>::kName, module_of<model::Wait>(), data),
        sqlite3_create_module(handle, Shape<model::HeapAlloc>::kName, module_of<model::HeapAlloc>(),
                              data),
        sqlite3_create_function_v2(handle, "stack_text", 1, flags, data, stack_text_function,
                                   nullptr, nullptr, nullptr),
        sqlite3_create_function_v2(handle, "frame_text", 1, flags, data, frame_text_function,
                                   nullptr, nullptr, nullptr)}) {
    if (code != SQLITE_OK) return source.database.failure("cannot be queried", code);
  }
  // Declares the tables now: later, the caller's authorizer would treat it as a CREATE TABLE.
  return source.database.execute("SELECT 1 FROM samples, waits, heap WHERE 0");
}

}  // namespace assay::run
