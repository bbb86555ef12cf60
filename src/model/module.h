// Modules: the files (and file-like things) that code lives in, known by build id.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/ids.h"

namespace assay::model {

enum class ModuleKind : uint8_t {
  elf = 0,     // a mapped file; frame addresses are offsets in the file
  kernel = 1,  // the kernel and its modules; frame addresses are absolute
  vdso = 2,    // the kernel's page of code in every process; addresses are offsets in its image
  anonymous =
      3,       // JIT code and other memory without a file, of one process; addresses are absolute
  marker = 4,  // no code: frames that say how a stack ended (see stack.h)
};

struct Module {
  ModuleId id;
  ModuleKind kind = ModuleKind::elf;
  std::string path;      // as the target sees it; "[kernel]", "[vdso]", "[anon PID]", "[assay]"
  std::string build_id;  // lowercase hex; empty when the file has none
};

// Gives each distinct (kind, path, build id) one id, in order of first sight. Ids count from 0.
class ModuleTable {
 public:
  ModuleId intern(ModuleKind kind, const std::string& path, const std::string& build_id);
  const Module& operator[](ModuleId id) const { return modules_[id.value]; }
  const std::vector<Module>& all() const { return modules_; }

 private:
  std::vector<Module> modules_;
  std::unordered_map<std::string, ModuleId> by_key_;
};

}  // namespace assay::model
