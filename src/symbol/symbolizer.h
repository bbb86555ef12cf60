// Symbolizer: (module, address) becomes function, file, line and the functions inlined there.
//
// In: modules as they are first seen, with a process through which their file can be opened; then
// frames. Out: Locations, innermost inlined function first; never empty for a known module: what
// has no symbol is named by its function's range or by module+offset. Threads: add_module and
// resolve may be called from several threads; work on different modules runs in parallel. Failures:
// a file that is gone, does not match its build id or is malformed yields fallback names and a
// reason in module_status(); hostile files neither crash nor run away.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "model/address_space.h"
#include "model/location.h"
#include "model/module.h"
#include "model/stack.h"

namespace assay::symbol {

class FileAccess;

struct Options {
  std::string cache_dir;  // empty: no cache on disk
  bool inlines = true;
  bool debuginfod = false;  // ask DEBUGINFOD_URLS' servers for missing debug files
  std::string kallsyms = "/proc/kallsyms";
  std::string boot_id_file = "/proc/sys/kernel/random/boot_id";
  std::shared_ptr<FileAccess> files = {};  // null: files are opened here
};

// What is known of one module's names, for the quality section and for doctor.
struct ModuleStatus {
  bool opened = false;
  bool has_symbols = false;  // .symtab, .dynsym or .gnu_debugdata
  bool has_lines = false;    // DWARF line tables
  std::string source;        // where names come from: "symtab", "debug file /usr/lib/debug/…"
  std::string problem;       // "file deleted", "build id differs", …; empty when fine
};

class Symbolizer {
 public:
  static std::unique_ptr<Symbolizer> create(const Options& options);
  virtual ~Symbolizer() = default;

  // Opens the module's file while `pid` lives and keeps it open; parses nothing yet.
  virtual void add_module(pid_t pid, const model::Mapping& mapping,
                          const model::Module& module) = 0;
  // `address` as in model::Frame: a file offset for ELF modules, absolute for the kernel and for
  // JIT.
  virtual std::vector<model::Location> resolve(model::ModuleId module, uint64_t address) = 0;
  // The same for many frames at once, in their order; modules are worked on in parallel.
  virtual std::vector<std::vector<model::Location>> resolve_all(
      std::span<const model::Frame> frames) = 0;
  // False for code made at run time that has no name yet: resolve() tells its place alone, and may
  // tell more later.
  virtual bool has_name(model::ModuleId /*module*/, uint64_t /*address*/) { return true; }
  // The data symbol that holds a module address, as "name" or "name+0x10"; empty when none does.
  // For ELF modules the address counts from code: A − m.start + m.file_offset, m being the module's
  // first executable mapping, wherever A itself lies (.data, .bss).
  virtual std::string resolve_data(model::ModuleId module, uint64_t address) = 0;
  virtual ModuleStatus module_status(model::ModuleId module) const = 0;
};

}  // namespace assay::symbol
