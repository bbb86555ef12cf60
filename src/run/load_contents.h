// load_contents: the small tables of an open run as Contents, every reference checked.
#pragma once

#include "base/result.h"
#include "run/reader.h"
#include "run/file/sqlite.h"

namespace assay::run {

// Failures: an Error naming the file, the table and the row that refers to nothing.
Result<Contents> load_contents(const Database& database);

}  // namespace assay::run
