// comparable_name(): a function's name without what another build of the same source changes.
//
// Clone suffixes of the compiler (".isra.0", ".cold", "[clone .part.3]"), link-time names
// (".llvm.4711") and Rust's hashes go; arguments and templates stay. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay::analysis {

std::string comparable_name(std::string_view name);

// A module's file name without its version: "libstdc++.so.6.0.30" and "libc-2.31.so" are
// "libstdc++.so" and "libc.so". Empty for one that is not known.
std::string comparable_module(std::string_view module);

}  // namespace assay::analysis
