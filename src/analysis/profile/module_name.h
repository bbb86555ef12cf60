// What a module's name tells of its code. Pure functions.
#pragma once

#include <string_view>

namespace assay::analysis {

inline bool is_library_file(std::string_view module) {
  return module.find(".so") != std::string_view::npos || module == "[vdso]";
}
// Made while the program ran: by a JIT compiler, mapped by no file.
inline bool is_generated_code(std::string_view module) {
  return module.starts_with("[anon") || module.starts_with("perf-");
}

}  // namespace assay::analysis
