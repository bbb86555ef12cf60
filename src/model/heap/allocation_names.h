// Which functions only allocate: malloc and similar functions, operator new, and functions of the
// standard library that allocate for their caller.
//
// The reader wants to know which line of the program needed the memory, so the report, SQL and
// exported profiles leave these names out. Pure; never fails.
#pragma once

#include <string>
#include <string_view>

namespace assay::model {

// malloc, operator new, strdup, g_malloc, std::allocator, …: allocates and does nothing else.
bool is_allocation_function(std::string_view name);
// A piece of the standard library that allocates for its caller: std::vector's growth, a string.
bool is_library_plumbing(std::string_view name);

// The first kind as a regular expression over names without their parameters.
std::string allocation_functions_pattern();

}  // namespace assay::model
