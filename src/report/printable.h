// Names from targets made safe to print and fitted to columns.
//
// Symbol names, paths and thread names are hostile: they may hold escape sequences, newlines,
// invalid UTF-8, characters that reverse a line, or 100 kB. Pure functions; they never fail.
#pragma once

#include <string>
#include <string_view>

namespace assay::report {

// Valid UTF-8 on one line: control and text-direction characters as \x1b or \u202e, invalid bytes
// as �.
std::string printable(std::string_view text);

// Columns that printable text takes on a terminal; colour sequences take none.
int display_width(std::string_view text);

// At most `width` columns, the middle replaced by "…", both ends kept. Text must be printable.
std::string elide_middle(std::string_view text, int width);

// Any text of the target's: printable, elided to `width` columns.
std::string fitted(std::string_view text, int width);

// A function's name as people read it: printable, template arguments folded, parameters dropped
// where they do not fit, then elided to `width` columns.
std::string function_name(std::string_view name, int width);

// Exactly `width` columns: elided, or filled with spaces after (left) or before (right).
std::string left(std::string_view text, int width);
std::string right(std::string_view text, int width);

}  // namespace assay::report
