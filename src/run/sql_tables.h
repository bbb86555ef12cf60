// The eponymous virtual tables `samples` and `waits` and the functions stack_text() and
// frame_text().
#pragma once

#include "base/result.h"
#include "run/reader.h"
#include "run/sqlite.h"

namespace assay::run {

// What a query reads. Must outlive the statements that use the tables.
struct SqlSource {
  const Database& database;
  const Contents& contents;
};

Result<void> register_sql_tables(const SqlSource& source);

}  // namespace assay::run
