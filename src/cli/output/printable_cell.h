// One value of a query as terminal text: what a target named itself cannot move the cursor.
#pragma once

#include <cstddef>
#include <string>

#include "run/sql/sql.h"

namespace assay::cli {

// NULL is empty; a blob is "<N bytes>"; control characters, tabs and newlines are written as \xNN.
std::string cell_text(const run::SqlValue& value);
// Columns that UTF-8 text takes, one per character.
size_t display_width(const std::string& text);

}  // namespace assay::cli
