#include "run/load_contents.h"

#include <functional>

#include "run/file/open_file.h"

namespace assay::run {
namespace {

// Ids of processes and threads may have gaps (a later id may be put first); at most this many, so
// that a damaged id cannot claim all memory.
constexpr uint64_t kMaxIdGap = 1024;
constexpr size_t kMaxInlineDepth = 4096;

// A row under checks: a number out of its range makes the row bad, and the table is refused.
class Row {
 public:
  explicit Row(const Statement& statement) : statement_(statement) {}

  int64_t i64(int column) const { return statement_.i64(column); }
  uint64_t u64(int column) const { return static_cast<uint64_t>(statement_.i64(column)); }
  std::string text(int column) const { return statement_.text(column); }
  TimeNs end(int column) const {
    return statement_.is_null(column) ? model::kStillRunning : statement_.i64(column);
  }
  // A number in [0, limit).
  uint32_t below(int column, uint64_t limit) {
    uint64_t value = u64(column);
    if (value < limit) return static_cast<uint32_t>(value);
    bad_ = true;
    return 0;
  }
  uint32_t u32(int column) { return below(column, uint64_t{1} << 32); }
  pid_t pid(int column) { return static_cast<pid_t>(below(column, uint64_t{1} << 31)); }
  template <class Enum>
  Enum enumerator(int column, int count) {
    return static_cast<Enum>(below(column, static_cast<uint64_t>(count)));
  }
  // The id column must count up from `expected`.
  void expect_id(size_t expected) { bad_ = bad_ || u64(0) != expected; }
  bool bad() const { return bad_; }
  void refuse() { bad_ = true; }

 private:
  const Statement& statement_;
  bool bad_ = false;
};

Result<void> for_each_row(const Database& database, const char* table, const char* sql,
                          const std::function<void(Row&)>& visit) {
  auto statement = Statement::prepare(database, sql);
  if (!statement) return damaged(database.path(), statement.error().what);
  for (size_t number = 1;; ++number) {
    auto next = statement->next();
    if (!next) return damaged(database.path(), next.error().what);
    if (!*next) return {};
    Row row(*statement);
    visit(row);
    if (row.bad()) {
      return damaged(
          database.path(),
          fmt::format("row {} of table {} refers to nothing or is out of range", number, table));
    }
  }
}

// The entry of `all` for the id in column 0, made together with the gap before it.
template <class T>
T& entry_for(Row& row, std::vector<T>& all) {
  uint32_t id = row.below(0, all.size() + kMaxIdGap);
  while (all.size() <= id) {
    all.emplace_back();
    all.back().id.value = static_cast<uint32_t>(all.size() - 1);
  }
  return all[id];
}

Result<void> load_info(const Database& database, model::RunInfo& info) {
  return for_each_row(database, "info", "SELECT key, value FROM info", [&](Row& row) {
    std::string key = row.text(0);
    if (key == "assay_version") info.assay_version = row.text(1);
    if (key == "backend") info.backend = row.text(1);
    if (key == "target") info.target = row.text(1);
    if (key == "command_line") info.command_line = row.text(1);
    if (key == "oncpu_event") info.oncpu_event = row.text(1);
    if (key == "end_reason") info.end_reason = row.text(1);
    if (key == "sample_period_ns") info.sample_period_ns = row.i64(1);
    if (key == "window_begin_ns") info.window_begin_ns = row.i64(1);
    if (key == "window_end_ns") info.window_end_ns = row.i64(1);
    if (key == "utc_begin_ns") info.utc_begin_ns = row.i64(1);
    if (key == "finished") info.finished = row.i64(1) == 1;
  });
}

Result<void> load_people(const Database& database, Contents& out) {
  auto done = for_each_row(database, "fact", "SELECT scope, key, value FROM fact ORDER BY id",
                           [&](Row& row) {
                             out.facts.push_back({row.text(0), row.text(1), row.text(2)});
                           });
  if (!done) return done;
  done = for_each_row(database, "note", "SELECT topic, text, remedy FROM note ORDER BY id",
                      [&](Row& row) {
                        out.notes.push_back({row.text(0), row.text(1), row.text(2)});
                      });
  if (!done) return done;
  return for_each_row(database, "loss", "SELECT kind, cpu, time_ns, count FROM loss ORDER BY id",
                      [&](Row& row) {
                        model::Loss loss;
                        loss.kind = row.enumerator<model::LossKind>(0, model::kLossKindCount);
                        loss.cpu = static_cast<int32_t>(row.i64(1));
                        loss.time = row.i64(2);
                        loss.count = row.u64(3);
                        out.losses.push_back(loss);
                      });
}

Result<void> load_threads(const Database& database, Contents& out) {
  auto done = for_each_row(
      database, "process",
      "SELECT id, pid, parent_pid, exe, comm, cmdline, role, build_id, cgroup, begin_ns, end_ns "
      "FROM process ORDER BY id",
      [&](Row& row) {
        model::Process& process = entry_for(row, out.processes);
        process.pid = row.pid(1);
        process.parent_pid = row.pid(2);
        process.exe = row.text(3);
        process.comm = row.text(4);
        process.cmdline = row.text(5);
        process.role = row.text(6);
        process.build_id = row.text(7);
        process.cgroup = row.text(8);
        process.begin_ns = row.i64(9);
        process.end_ns = row.end(10);
      });
  if (!done) return done;
  done = for_each_row(database, "thread",
                      "SELECT id, process, tid, name, pool, begin_ns, end_ns FROM thread "
                      "ORDER BY id",
                      [&](Row& row) {
                        model::Thread& thread = entry_for(row, out.threads);
                        thread.process = {row.below(1, out.processes.size())};
                        thread.tid = row.pid(2);
                        thread.name = row.text(3);
                        thread.pool = row.text(4);
                        thread.begin_ns = row.i64(5);
                        thread.end_ns = row.end(6);
                      });
  if (!done) return done;
  if (!out.threads.empty() && out.processes.empty()) {
    return damaged(database.path(), "it has threads but no process");
  }
  return {};
}

Result<void> load_code(const Database& database, Contents& out) {
  auto done = for_each_row(
      database, "module", "SELECT id, kind, path, build_id FROM module ORDER BY id", [&](Row& row) {
        row.expect_id(out.modules.size());
        model::Module module;
        module.id = {row.u32(0)};
        module.kind = row.enumerator<model::ModuleKind>(1, 5);
        module.path = row.text(2);
        module.build_id = row.text(3);
        out.modules.push_back(std::move(module));
      });
  if (!done) return done;
  done = for_each_row(database, "mapping",
                      "SELECT process, start, end, file_offset, module, from_ns FROM mapping "
                      "ORDER BY id",
                      [&](Row& row) {
                        TimedMapping entry;
                        entry.process = {row.below(0, out.processes.size())};
                        entry.mapping.start = row.u64(1);
                        entry.mapping.end = row.u64(2);
                        entry.mapping.file_offset = row.u64(3);
                        entry.mapping.module = {row.below(4, out.modules.size())};
                        entry.from_ns = row.i64(5);
                        out.mappings.push_back(entry);
                      });
  if (!done) return done;
  done = for_each_row(database, "frame", "SELECT id, module, address FROM frame ORDER BY id",
                      [&](Row& row) {
                        row.expect_id(out.frames.size());
                        out.frames.push_back({{row.below(1, out.modules.size())}, row.u64(2)});
                      });
  if (!done) return done;
  out.stacks.emplace_back();  // the empty stack
  return for_each_row(database, "stack", "SELECT id, parent, frame FROM stack ORDER BY id",
                      [&](Row& row) {
                        row.expect_id(out.stacks.size());
                        out.stacks.push_back(
                            {{row.below(1, out.stacks.size())}, {row.below(2, out.frames.size())}});
                      });
}

Result<void> load_locations(const Database& database, Contents& out) {
  struct Function {
    std::string name, system_name, file;
    uint32_t line;
  };
  std::vector<Function> functions;
  auto done = for_each_row(
      database, "function", "SELECT id, name, system_name, file, line FROM function ORDER BY id",
      [&](Row& row) {
        row.expect_id(functions.size());
        functions.push_back({row.text(1), row.text(2), row.text(3), row.u32(4)});
      });
  if (!done) return done;
  out.locations.resize(out.frames.size());
  return for_each_row(
      database, "location",
      "SELECT frame, depth, function, line, inlined FROM location ORDER BY frame, depth",
      [&](Row& row) {
        uint32_t frame = row.below(0, out.frames.size());
        uint32_t function = row.below(2, functions.size());
        if (row.bad()) return;
        std::vector<model::Location>& all = out.locations[frame];
        if (row.u64(1) != all.size() || all.size() >= kMaxInlineDepth) return row.refuse();
        const Function& named = functions[function];
        all.push_back({named.name, named.system_name, named.file, row.u32(3), named.line,
                       row.below(4, 2) == 1});
      });
}

Result<void> load_series(const Database& database, Contents& out) {
  return for_each_row(database, "series",
                      "SELECT id, scope, kind, owner, name, unit, label FROM series ORDER BY id",
                      [&](Row& row) {
                        row.expect_id(out.series.size());
                        model::Series series;
                        series.id = {row.u32(0)};
                        series.scope = row.enumerator<model::SeriesScope>(1, 7);
                        series.kind = row.enumerator<model::SeriesKind>(2, 2);
                        series.owner = row.u32(3);
                        series.name = row.text(4);
                        series.unit = row.text(5);
                        series.label = row.text(6);
                        bool of_process = series.scope == model::SeriesScope::process;
                        bool of_thread = series.scope == model::SeriesScope::thread;
                        if (of_process && series.owner >= out.processes.size()) return row.refuse();
                        if (of_thread && series.owner >= out.threads.size()) return row.refuse();
                        out.series.push_back(std::move(series));
                      });
}

// The oldest runs lack this table.
Result<void> load_data_names(const Database& database, Contents& out) {
  auto there = database.query_int(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'data_name' AND sql NOT "
      "LIKE 'CREATE VIRTUAL%'");
  if (!there || *there == 0) return {};
  return for_each_row(database, "data_name",
                      "SELECT process, address, name FROM data_name ORDER BY process, address",
                      [&](Row& row) {
                        uint32_t process = row.below(0, out.processes.size());
                        out.data_names.push_back({{process}, row.u64(1), row.text(2)});
                      });
}

bool has_rows(const Database& database, const char* query) {
  auto found = database.query_int(query);
  return found && *found != 0;
}

// They lack this table, too.
Result<void> load_heap_sums(const Database& database, Contents& out) {
  bool there = has_rows(database,
                        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = "
                        "'heap_sum' AND sql NOT LIKE 'CREATE VIRTUAL%'");
  if (!there) return {};
  int64_t most = INT64_MAX;
  auto done = for_each_row(
      database, "heap_sum",
      "SELECT thread, stack, live_bytes, live_objects, bytes, objects, rate FROM heap_sum ORDER BY "
      "id",
      [&](Row& row) {
        model::HeapSum sum;
        sum.thread = {row.below(0, out.threads.size())};
        sum.stack = {row.below(1, out.stacks.size())};
        int column = 2;
        for (int64_t* value : {&sum.live_bytes, &sum.live_objects, &sum.bytes, &sum.objects}) {
          *value = row.i64(column++);
          if (*value < 0 || *value > most) return row.refuse();
          most -= *value;  // so that their sum cannot overflow
        }
        sum.rate_bytes = row.i64(column);
        if (sum.rate_bytes < 0) return row.refuse();
        out.heap_sums.push_back(sum);
      });
  for (const model::Fact& fact : out.facts)
    out.heap_imported = out.heap_imported || (fact.scope == "import" && fact.key == "heap");
  out.has_heap = out.has_heap || out.heap_imported;
  return done;
}

// They lack these tables, too.
Result<void> load_heap(const Database& database, Contents& out) {
  auto there = database.query_int(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('heap_snapshot', "
      "'heap_block') AND sql NOT LIKE 'CREATE VIRTUAL%'");
  if (!there || *there != 2) return {};
  auto blocks = database.query_int("SELECT EXISTS(SELECT 1 FROM heap_block)");
  out.has_heap = blocks && *blocks != 0;
  return for_each_row(
      database, "heap_snapshot",
      "SELECT process, time_ns, live_bytes, live_objects, samples FROM heap_snapshot ORDER BY id",
      [&](Row& row) {
        uint32_t process = row.below(0, out.processes.size());
        out.heap_snapshots.push_back({{process}, row.i64(1), row.i64(2), row.i64(3), row.i64(4)});
      });
}

}  // namespace

Result<Contents> load_contents(const Database& database) {
  Contents out;
  if (auto done = load_info(database, out.info); !done) return std::unexpected(done.error());
  if (auto done = load_people(database, out); !done) return std::unexpected(done.error());
  if (auto done = load_threads(database, out); !done) return std::unexpected(done.error());
  if (auto done = load_code(database, out); !done) return std::unexpected(done.error());
  if (auto done = load_locations(database, out); !done) return std::unexpected(done.error());
  if (auto done = load_series(database, out); !done) return std::unexpected(done.error());
  if (auto done = load_data_names(database, out); !done) return std::unexpected(done.error());
  if (auto done = load_heap(database, out); !done) return std::unexpected(done.error());
  if (auto done = load_heap_sums(database, out); !done) return std::unexpected(done.error());
  out.has_time = has_rows(database, "SELECT EXISTS(SELECT 1 FROM sample_block)") ||
                 has_rows(database, "SELECT EXISTS(SELECT 1 FROM wait_block)");
  return out;
}

}  // namespace assay::run
