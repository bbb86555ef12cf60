// Demangling: a linker's name becomes the name its programmer wrote.
//
// C++ (Itanium), Rust (legacy and v0) and D names are recognised by their prefix; Go's and C's pass
// as they are. What cannot be demangled within the limits of length, depth and output is returned
// unchanged: names come from files that may be hostile. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace assay::symbol {

std::string demangle(std::string_view name);

// The parts, each of which says with an empty string that the name is not of its kind or is
// malformed.
std::string demangle_cpp(std::string_view name);
std::string demangle_rust_legacy(std::string_view name);
std::string demangle_rust_v0(std::string_view name);
std::string demangle_d(std::string_view name);

}  // namespace assay::symbol
