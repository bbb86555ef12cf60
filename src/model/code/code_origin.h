// Whose code a module of user space holds, told by the module's name: the program's own, a
// library's, or code that was generated while the program ran.
//
// The only place where this is decided. Modules of Assay's own runs also have a ModuleKind, which
// says more; functions of a call tree and files of other tools have the name alone. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay::model {

enum class CodeOrigin : uint8_t {
  program,    // its own file; also a module that is not known ("[unknown]")
  library,    // a shared library, or the kernel's page of code in every process ("[vdso]")
  generated,  // by a JIT compiler: in no file, or in one that was written for profilers
};

// `module`: a path, a file name, or a name in brackets, also as perf writes them ("//anon",
// "/tmp/perf-4711.map", "jitted-4711-1.so").
CodeOrigin code_origin(std::string_view module);

// Where ".so" begins in the name of a shared library ("libc.so.6", "libc-2.31.so"); npos for all
// other files.
size_t library_suffix_at(std::string_view module);

}  // namespace assay::model
