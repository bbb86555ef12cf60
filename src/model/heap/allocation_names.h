// Which functions only allocate: malloc and its kin, operator new, and what of the standard library
// calls them for somebody else.
//
// What a person asks is which line of the program wanted the memory. The report, SQL and exported
// profiles leave the same names out. Pure; never fails.
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
