#include "run/run_tables.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "run/blocks/second_totals.h"

namespace assay::run {
namespace {

// The violation of the Writer's contract; the run would be unreadable, so it must not be written.
std::unexpected<Error> out_of_order(const Database& database, const char* what, uint32_t id,
                                    size_t expected) {
  return fail("{}: internal error: {} {} was added where {} was due", database.path(), what, id,
              expected);
}

int64_t bits(uint64_t value) {
  return static_cast<int64_t>(value);
}

Statement& bind_end(Statement& statement, TimeNs end) {
  return end == model::kStillRunning ? statement.bind_null() : statement.bind(end);
}

template <class Row>
struct Chunk {
  uint32_t process;
  std::span<const Row> rows;
};

// The rows of one process from the front of `rows`, at most a block of them.
template <class Row>
Chunk<Row> take_chunk(std::span<const Row>& rows, const ThreadGrouper& threads) {
  uint32_t process = threads.process_of(rows[0].thread);
  size_t count = 1;
  while (count < rows.size() && count < kMaxBlockRows &&
         threads.process_of(rows[count].thread) == process) {
    ++count;
  }
  Chunk<Row> chunk{process, rows.first(count)};
  rows = rows.subspan(count);
  return chunk;
}

}  // namespace

Result<void> RunTables::prepare() {
  struct Entry {
    Statement& statement;
    const char* text;
  };
  for (const Entry& entry : std::initializer_list<Entry>{
           {sql_.info, "INSERT OR REPLACE INTO info VALUES(?,?)"},
           {sql_.fact,
            "INSERT INTO fact(scope,key,value) VALUES(?,?,?) "
            "ON CONFLICT(scope,key) DO UPDATE SET value = excluded.value"},
           {sql_.note, "INSERT OR IGNORE INTO note(topic,text,remedy) VALUES(?,?,?)"},
           {sql_.process, "INSERT OR REPLACE INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?)"},
           {sql_.thread, "INSERT OR REPLACE INTO thread VALUES(?,?,?,?,?,?,?)"},
           {sql_.module, "INSERT INTO module VALUES(?,?,?,?)"},
           {sql_.mapping, "INSERT INTO mapping VALUES(NULL,?,?,?,?,?,?)"},
           {sql_.frame, "INSERT INTO frame VALUES(?,?,?)"},
           {sql_.stack, "INSERT INTO stack VALUES(?,?,?)"},
           {sql_.function, "INSERT INTO function VALUES(?,?,?,?,?,?)"},
           {sql_.location, "INSERT INTO location VALUES(?,?,?,?,?)"},
           {sql_.drop_locations, "DELETE FROM location WHERE frame = ?"},
           {sql_.data_name, "INSERT OR REPLACE INTO data_name VALUES(?,?,?)"},
           {sql_.source_line, "INSERT OR REPLACE INTO source_line VALUES(?,?,?)"},
           {sql_.series, "INSERT OR REPLACE INTO series VALUES(?,?,?,?,?,?,?)"},
           {sql_.point, "INSERT INTO point VALUES(NULL,?,?,?)"},
           {sql_.loss, "INSERT INTO loss VALUES(NULL,?,?,?,?)"},
           {sql_.sample_block, "INSERT INTO sample_block VALUES(NULL,?,?,?,?,?,?)"},
           {sql_.wait_block, "INSERT INTO wait_block VALUES(NULL,?,?,?,?,?,?,?)"},
           {sql_.heap_block, "INSERT INTO heap_block VALUES(NULL,?,?,?,?,?,?)"},
           {sql_.heap_free_block, "INSERT INTO heap_free_block VALUES(NULL,?,?,?,?,?)"},
           {sql_.heap_snapshot, "INSERT INTO heap_snapshot VALUES(NULL,?,?,?,?,?)"},
           {sql_.heap_sum, "INSERT INTO heap_sum VALUES(NULL,?,?,?,?,?,?,?)"},
           {sql_.next_wait_block, "SELECT coalesce(max(id), 0) + 1 FROM wait_block"},
           {sql_.drop_wait_blocks, "DELETE FROM wait_block WHERE id >= ?"},
           {sql_.second,
            "INSERT INTO thread_second VALUES(?,?,?,?,?,?,?) ON CONFLICT(second,thread) DO UPDATE "
            "SET samples = samples + excluded.samples, weight_ns = weight_ns + excluded.weight_ns, "
            "waits = waits + excluded.waits, blocked_ns = blocked_ns + excluded.blocked_ns, "
            "runqueue_ns = runqueue_ns + excluded.runqueue_ns"}}) {
    auto statement = Statement::prepare(database_, entry.text);
    if (!statement) return std::unexpected(statement.error());
    entry.statement = std::move(*statement);
  }
  return {};
}

Result<void> RunTables::write(Pending& pending, TimeNs until) {
  if (auto done = write_threads(pending); !done) return done;
  if (auto done = write_code(pending); !done) return done;
  if (auto done = write_locations(pending); !done) return done;
  if (auto done = write_series(pending); !done) return done;
  leave_out_unreadable(pending);
  if (auto done = write_samples(pending); !done) return done;
  if (auto done = write_heap(pending); !done) return done;
  if (auto done = drop_open_waits(); !done) return done;
  if (auto done = write_waits(pending); !done) return done;
  if (auto done = write_seconds(); !done) return done;
  if (auto done = write_open_waits(pending, until); !done) return done;
  return write_people(pending);
}

Result<void> RunTables::write_info(const model::RunInfo& info) {
  struct TextValue {
    const char* key;
    const std::string& value;
  };
  for (const TextValue& entry :
       std::initializer_list<TextValue>{{"assay_version", info.assay_version},
                                        {"backend", info.backend},
                                        {"target", info.target},
                                        {"command_line", info.command_line},
                                        {"oncpu_event", info.oncpu_event},
                                        {"end_reason", info.end_reason}}) {
    if (auto done = sql_.info.bind(entry.key).bind(entry.value).run(); !done) return done;
  }
  struct Number {
    const char* key;
    int64_t value;
  };
  for (const Number& entry :
       std::initializer_list<Number>{{"sample_period_ns", info.sample_period_ns},
                                     {"window_begin_ns", info.window_begin_ns},
                                     {"window_end_ns", info.window_end_ns},
                                     {"utc_begin_ns", info.utc_begin_ns},
                                     {"finished", info.finished ? 1 : 0}}) {
    if (auto done = sql_.info.bind(entry.key).bind(entry.value).run(); !done) return done;
  }
  return {};
}

Result<void> RunTables::write_people(const Pending& pending) {
  for (const model::Fact& fact : pending.facts) {
    auto done = sql_.fact.bind(fact.scope).bind(fact.key).bind(fact.value).run();
    if (!done) return done;
  }
  for (const model::QualityNote& note : pending.notes) {
    auto done = sql_.note.bind(note.topic).bind(note.text).bind(note.remedy).run();
    if (!done) return done;
  }
  for (const model::Loss& loss : pending.losses) {
    sql_.loss.bind(static_cast<int64_t>(loss.kind)).bind(loss.cpu).bind(loss.time);
    if (auto done = sql_.loss.bind(bits(loss.count)).run(); !done) return done;
  }
  for (const model::DataName& name : pending.data_names) {
    auto done =
        sql_.data_name.bind(name.process.value).bind(bits(name.address)).bind(name.name).run();
    if (!done) return done;
  }
  for (const SourceLine& line : pending.source_lines) {
    auto done = sql_.source_line.bind(line.file).bind(line.line).bind(line.text).run();
    if (!done) return done;
  }
  return {};
}

Result<void> RunTables::write_threads(const Pending& pending) {
  for (const model::Process& process : pending.processes) {
    Statement& sql = sql_.process;
    sql.bind(process.id.value).bind(process.pid).bind(process.parent_pid).bind(process.exe);
    sql.bind(process.comm).bind(process.cmdline).bind(process.role).bind(process.build_id);
    sql.bind(process.cgroup).bind(process.begin_ns);
    if (auto done = bind_end(sql, process.end_ns).run(); !done) return done;
  }
  for (const model::Thread& thread : pending.threads) {
    Statement& sql = sql_.thread;
    sql.bind(thread.id.value).bind(thread.process.value).bind(thread.tid).bind(thread.name);
    sql.bind(thread.pool).bind(thread.begin_ns);
    if (auto done = bind_end(sql, thread.end_ns).run(); !done) return done;
    threads_.set_process(thread.id, thread.process);
  }
  return {};
}

Result<void> RunTables::write_code(const Pending& pending) {
  for (const model::Module& module : pending.modules) {
    if (module.id.value != modules_) {
      return out_of_order(database_, "module", module.id.value, modules_);
    }
    sql_.module.bind(module.id.value).bind(static_cast<int64_t>(module.kind)).bind(module.path);
    if (auto done = sql_.module.bind(module.build_id).run(); !done) return done;
    ++modules_;
  }
  for (const TimedMapping& entry : pending.mappings) {
    const model::Mapping& mapping = entry.mapping;
    sql_.mapping.bind(entry.process.value).bind(bits(mapping.start)).bind(bits(mapping.end));
    sql_.mapping.bind(bits(mapping.file_offset)).bind(mapping.module.value).bind(entry.from_ns);
    if (auto done = sql_.mapping.run(); !done) return done;
  }
  for (const auto& [id, frame] : pending.frames) {
    if (id.value != module_of_frame_.size() || frame.module.value >= modules_) {
      return out_of_order(database_, "frame", id.value, module_of_frame_.size());
    }
    sql_.frame.bind(id.value).bind(frame.module.value).bind(bits(frame.address));
    if (auto done = sql_.frame.run(); !done) return done;
    module_of_frame_.push_back(frame.module.value);
  }
  for (const auto& [id, node] : pending.stacks) {
    if (id.value != stacks_ || node.parent.value >= stacks_ ||
        node.frame.value >= module_of_frame_.size()) {
      return out_of_order(database_, "stack", id.value, stacks_);
    }
    sql_.stack.bind(id.value).bind(node.parent.value).bind(node.frame.value);
    if (auto done = sql_.stack.run(); !done) return done;
    ++stacks_;
  }
  return {};
}

Result<int64_t> RunTables::function_id(const model::Location& location, uint32_t module) {
  // Lengths, not separators: names are hostile and may hold any byte.
  std::string key = fmt::format("{} {} {} {} ", module, location.function_line,
                                location.function.size(), location.system_name.size());
  key += location.function;
  key += location.system_name;
  key += location.file;
  auto [it, added] = functions_.try_emplace(std::move(key), functions_.size());
  if (added) {
    sql_.function.bind(it->second).bind(location.function).bind(location.system_name).bind(module);
    auto done = sql_.function.bind(location.file).bind(location.function_line).run();
    if (!done) return std::unexpected(done.error());
  }
  return it->second;
}

Result<void> RunTables::write_locations(const Pending& pending) {
  for (const auto& [frame, locations] : pending.locations) {
    if (frame.value >= module_of_frame_.size()) {
      return out_of_order(database_, "location of frame", frame.value, module_of_frame_.size());
    }
    if (auto done = sql_.drop_locations.bind(frame.value).run(); !done) return done;
    for (size_t depth = 0; depth < locations.size(); ++depth) {
      auto function = function_id(locations[depth], module_of_frame_[frame.value]);
      if (!function) return std::unexpected(function.error());
      sql_.location.bind(frame.value).bind(static_cast<int64_t>(depth)).bind(*function);
      sql_.location.bind(locations[depth].line).bind(locations[depth].inlined);
      if (auto done = sql_.location.run(); !done) return done;
    }
  }
  return {};
}

Result<void> RunTables::write_series(const Pending& pending) {
  for (const model::Series& series : pending.series) {
    if (series.id.value > series_) {
      return out_of_order(database_, "series", series.id.value, series_);
    }
    if (series.id.value == series_) ++series_;
    Statement& sql = sql_.series;
    sql.bind(series.id.value).bind(static_cast<int64_t>(series.scope));
    sql.bind(static_cast<int64_t>(series.kind)).bind(series.owner).bind(series.name);
    if (auto done = sql.bind(series.unit).bind(series.label).run(); !done) return done;
  }
  for (const model::Point& point : pending.points) {
    if (point.series.value >= series_) {
      return out_of_order(database_, "point of series", point.series.value, series_);
    }
    sql_.point.bind(point.series.value).bind(point.time).bind(point.value);
    if (auto done = sql_.point.run(); !done) return done;
  }
  return {};
}

void RunTables::leave_out_unreadable(Pending& pending) const {
  auto unknown = [this](const auto& row) {
    return !threads_.knows(row.thread) || row.stack.value >= stacks_;
  };
  uint64_t count = std::erase_if(pending.samples, unknown);
  auto unreadable = [&](model::Wait& wait) {
    if (!threads_.knows(wait.waker)) wait.waker = model::Wait::kNoWaker;
    if (!threads_.knows(wait.owner)) wait.owner = model::Wait::kNoOwner;
    if (wait.waker_stack.value >= stacks_) wait.waker_stack = {};
    return unknown(wait) || !is_storable(wait);
  };
  count += std::erase_if(pending.waits, unreadable);
  // Counted when they end.
  if (pending.open_waits) std::erase_if(*pending.open_waits, unreadable);
  count += std::erase_if(pending.heap_allocs, unknown);
  count += std::erase_if(pending.heap_sums, unknown);
  count += std::erase_if(pending.heap_frees, [this](const model::HeapFree& row) {
    return !threads_.knows(row.thread);
  });
  if (count == 0) return;
  TimeNs time = pending.info ? pending.info->window_end_ns : 0;
  pending.losses.push_back({model::LossKind::malformed, -1, time, count});
  pending.notes.push_back({"run file",
                           "some samples or waits named an unknown thread or stack, or had "
                           "impossible times, and were left out (counted as malformed records)",
                           ""});
}

Result<void> RunTables::write_samples(const Pending& pending) {
  threads_.group(std::span(pending.samples), samples_);
  for (std::span<const model::Sample> rest = samples_; !rest.empty();) {
    auto [process, rows] = take_chunk(rest, threads_);
    auto blob = encoder_.encode(rows);
    if (!blob) return std::unexpected(blob.error());
    SampleTotals totals = totals_of(rows);
    sql_.sample_block.bind(process).bind(totals.begin_ns).bind(totals.end_ns).bind(totals.count);
    auto done = sql_.sample_block.bind(totals.weight_ns).bind_blob(*blob).run();
    if (!done) return done;
  }
  return {};
}

Result<void> RunTables::write_waits(const Pending& pending) {
  threads_.group(std::span(pending.waits), waits_);
  return write_wait_blocks(waits_);
}

Result<void> RunTables::write_heap(const Pending& pending) {
  threads_.group(std::span(pending.heap_allocs), heap_allocs_);
  for (std::span<const model::HeapAlloc> rest = heap_allocs_; !rest.empty();) {
    auto [process, rows] = take_chunk(rest, threads_);
    auto blob = encoder_.encode(rows);
    if (!blob) return std::unexpected(blob.error());
    HeapAllocTotals totals = totals_of(rows);
    sql_.heap_block.bind(process).bind(totals.begin_ns).bind(totals.end_ns).bind(totals.count);
    if (auto done = sql_.heap_block.bind(totals.bytes).bind_blob(*blob).run(); !done) return done;
  }
  threads_.group(std::span(pending.heap_frees), heap_frees_);
  for (std::span<const model::HeapFree> rest = heap_frees_; !rest.empty();) {
    auto [process, rows] = take_chunk(rest, threads_);
    auto blob = encoder_.encode(rows);
    if (!blob) return std::unexpected(blob.error());
    HeapFreeTotals totals = totals_of(rows);
    sql_.heap_free_block.bind(process).bind(totals.begin_ns).bind(totals.end_ns);
    auto done = sql_.heap_free_block.bind(totals.count).bind_blob(*blob).run();
    if (!done) return done;
  }
  for (const model::HeapSnapshot& snapshot : pending.heap_snapshots) {
    Statement& sql = sql_.heap_snapshot;
    sql.bind(snapshot.process.value).bind(snapshot.time).bind(snapshot.live_bytes);
    if (auto done = sql.bind(snapshot.live_objects).bind(snapshot.samples).run(); !done)
      return done;
  }
  for (const model::HeapSum& sum : pending.heap_sums) {
    Statement& sql = sql_.heap_sum;
    sql.bind(sum.thread.value).bind(sum.stack.value).bind(sum.live_bytes).bind(sum.live_objects);
    if (auto done = sql.bind(sum.bytes).bind(sum.objects).bind(sum.rate_bytes).run(); !done)
      return done;
  }
  return {};
}

// Open waits are in blocks of their own, the last ones of the file, until the next flush. A wait
// that has ended since it was seen open is among the others by now.
Result<void> RunTables::write_open_waits(const Pending& pending, TimeNs until) {
  if (pending.open_waits) {
    open_waits_.clear();
    for (const model::Wait& wait : *pending.open_waits) open_waits_[wait.thread.value] = wait;
  }
  for (const model::Wait& wait : pending.waits) {
    auto open = open_waits_.find(wait.thread.value);
    if (open != open_waits_.end() && wait.start >= open->second.start) open_waits_.erase(open);
  }
  if (open_waits_.empty()) return {};
  std::vector<model::Wait> open;
  for (const auto& [thread, wait] : open_waits_) {
    open.push_back(wait);
    open.back().duration_ns = std::max(wait.duration_ns, until - wait.start);
    if (wait.has(model::WaitFlag::preempted)) open.back().runqueue_ns = open.back().duration_ns;
  }
  threads_.group(std::span<const model::Wait>(open), waits_);
  auto next = sql_.next_wait_block.next();
  if (!next) return std::unexpected(next.error());
  first_open_block_ = sql_.next_wait_block.i64(0);
  sql_.next_wait_block.restart();
  return write_wait_blocks(waits_);
}

Result<void> RunTables::drop_open_waits() {
  if (first_open_block_ == 0) return {};
  int64_t first = std::exchange(first_open_block_, 0);
  return sql_.drop_wait_blocks.bind(first).run();
}

Result<void> RunTables::write_wait_blocks(std::span<const model::Wait> grouped) {
  for (std::span<const model::Wait> rest = grouped; !rest.empty();) {
    auto [process, rows] = take_chunk(rest, threads_);
    auto blob = encoder_.encode(rows);
    if (!blob) return std::unexpected(blob.error());
    WaitTotals totals = totals_of(rows);
    sql_.wait_block.bind(process).bind(totals.begin_ns).bind(totals.end_ns).bind(totals.count);
    auto done =
        sql_.wait_block.bind(totals.blocked_ns).bind(totals.runqueue_ns).bind_blob(*blob).run();
    if (!done) return done;
  }
  return {};
}

Result<void> RunTables::write_seconds() {
  for (const SecondTotal& total : second_totals(samples_, waits_)) {
    sql_.second.bind(total.second).bind(total.thread).bind(total.samples).bind(total.weight_ns);
    auto done = sql_.second.bind(total.waits).bind(total.blocked_ns).bind(total.runqueue_ns).run();
    if (!done) return done;
  }
  return {};
}

}  // namespace assay::run
