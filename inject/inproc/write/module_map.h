// ModuleMap: what is mapped executable in this process, by address, with build ids.
//
// In: /proc/self/maps, the ELF heads of the files it names. Out: modules sorted by address, in
// memory of the caller's arena. Not async-signal-safe. Failures: false when /proc cannot be read; a
// file that cannot be read has an empty build id.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/inproc/lifecycle/arena.h"

namespace assay::inproc {

struct Module {
  uintptr_t start = 0, end = 0;
  uint64_t offset = 0;
  uint64_t inode = 0;
  const char* path = "";       // "" for code without a file
  const char* build_id = "";   // lowercase hex
  bool has_functions = false;  // set by resolve_names
};

class ModuleMap {
 public:
  bool read(Arena& arena);
  Module* find(uintptr_t address);
  Module* begin() { return modules_; }
  Module* end() { return modules_ + count_; }
  size_t size() const { return count_; }

 private:
  Module* modules_ = nullptr;
  size_t count_ = 0;
};

// The program's path ("/proc/self/exe" where it cannot be read), in `arena`.
const char* program_path(Arena& arena);

}  // namespace assay::inproc
