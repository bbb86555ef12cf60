// RunTables: writes pending data into the tables of an open run, inside the caller's transaction.
//
// It keeps only what later rows need: the number of ids, the process of each thread, the interned
// names. Not thread-safe. Failures: SQLite's; and ids that do not ascend, which would make a file
// that cannot be read. Samples and waits that refer to an unknown thread or stack, or whose times
// are impossible, are left out, counted as a loss and noted in the run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "run/blocks/block_codec.h"
#include "run/pending.h"
#include "run/file/sqlite.h"
#include "run/blocks/thread_grouper.h"

namespace assay::run {

class RunTables {
 public:
  explicit RunTables(const Database& database) : database_(database) {}

  Result<void> prepare();
  // `until`: waits that are open at this time are stored with this end.
  Result<void> write(Pending& pending, TimeNs until);
  Result<void> write_info(const model::RunInfo& info);
  void release() { sql_ = {}; }  // releases the database; nothing else may be called after it

 private:
  Result<void> write_people(const Pending& pending);   // facts, notes, losses, text
  Result<void> write_threads(const Pending& pending);  // processes, threads
  Result<void> write_code(const Pending& pending);     // modules, mappings, frames, stacks
  Result<void> write_locations(const Pending& pending);
  Result<void> write_series(const Pending& pending);
  Result<void> write_samples(const Pending& pending);
  Result<void> write_waits(const Pending& pending);
  Result<void> write_heap(const Pending& pending);
  Result<void> drop_open_waits();
  Result<void> write_open_waits(const Pending& pending, TimeNs until);
  Result<void> write_wait_blocks(std::span<const model::Wait> grouped);
  Result<void> write_seconds();
  Result<int64_t> function_id(const model::Location& location, uint32_t module);
  void leave_out_unreadable(Pending& pending) const;

  const Database& database_;
  struct Statements {
    Statement info, fact, note, process, thread, module, mapping, frame, stack, function, location,
        drop_locations, data_name, source_line, series, point, loss, sample_block, wait_block,
        heap_block, heap_free_block, heap_snapshot, heap_sum, next_wait_block, drop_wait_blocks,
        second;
  };
  Statements sql_;
  ThreadGrouper threads_;
  BlockEncoder encoder_;
  std::vector<model::Sample> samples_;  // grouped, of the flush at hand
  std::vector<model::Wait> waits_;
  std::vector<model::HeapAlloc> heap_allocs_;
  std::vector<model::HeapFree> heap_frees_;
  std::vector<uint32_t> module_of_frame_;
  uint32_t modules_ = 0;
  uint32_t stacks_ = 1;
  uint32_t series_ = 0;
  std::unordered_map<uint32_t, model::Wait> open_waits_;  // by thread, as of the last flush
  int64_t first_open_block_ = 0;  // blocks from here on hold open waits; 0: there are none
  std::unordered_map<std::string, int64_t> functions_;
};

}  // namespace assay::run
