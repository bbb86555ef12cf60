// The eponymous virtual tables `samples`, `waits` and `heap` and the functions stack_text() and
// frame_text().
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "run/file/sqlite.h"
#include "run/reader.h"

namespace assay::run {

// What a query reads. Must outlive the statements that use the tables.
struct SqlSource {
  const Database& database;
  const Contents& contents;
  // The rows that there are: of these threads (empty: all), in this time.
  std::vector<bool> threads = {};
  TimeRange time = {};
  // When sampled allocations were freed, by their id: loaded when a query first asks for `heap`.
  mutable std::unordered_map<uint64_t, TimeNs> heap_ends = {};
  mutable bool heap_ends_loaded = false;
};

Result<void> register_sql_tables(const SqlSource& source);

}  // namespace assay::run
