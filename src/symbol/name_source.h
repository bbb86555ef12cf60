// NameSource: the names of one module, whatever kind it is. The symbolizer holds one per module.
//
// Threads: every call may come from any thread; an implementation locks what it must.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/location.h"
#include "model/module.h"
#include "os/process/module_file.h"
#include "symbol/symbolizer.h"

namespace assay::symbol {

class NameSource {
 public:
  virtual ~NameSource() = default;
  virtual std::vector<model::Location> resolve(uint64_t address) = 0;
  // False: the address has no name so far, and may get one later.
  virtual bool has_name(uint64_t) { return true; }
  virtual std::string resolve_data(uint64_t) { return ""; }
  virtual ModuleStatus status() = 0;
  // About how many bytes have to be read before the first name is known, decompressed ones counted;
  // to begin with the longest work.
  virtual uint64_t effort_bytes() { return 0; }
};

// A mapped file; `opened` may be an Error, whose sentence becomes the status' problem. `pid` names
// the process under whose root separate debug files are looked for; 0: the host's alone.
std::unique_ptr<NameSource> make_elf_names(const Options& options, const model::Module& module,
                                           pid_t pid, Result<os::ModuleFile> opened);
std::unique_ptr<NameSource> make_vdso_names(const Options& options, const model::Module& module);
// The code that process `pid` generated; 0: the pid in the module's path, "[anon PID]".
std::unique_ptr<NameSource> make_jit_names(const Options& options, pid_t pid, const model::Module& module);
std::unique_ptr<NameSource> make_kernel_names(const Options& options);
std::unique_ptr<NameSource> make_marker_names();

// "module+0x1f0" of a module's path: what is left when nothing names an address.
std::string offset_name(const std::string& path, uint64_t address);
std::string module_base_name(const std::string& path);
// Fills function and system_name from a linker's name.
void set_names(model::Location& location, std::string_view linkage_name);

}  // namespace assay::symbol
