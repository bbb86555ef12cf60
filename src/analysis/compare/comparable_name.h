// comparable_name(): a function's name without what another build of the same source changes.
//
// Clone suffixes of the compiler (".isra.0", ".cold", "[clone .part.3]"), link-time names
// (".llvm.4711") and Rust's hashes go; arguments and templates stay. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay::analysis {

std::string comparable_name(std::string_view name);

}  // namespace assay::analysis
