// DebugFiles: finds the files that hold a module's debug information, and checks that they belong
// to it.
//
// In: the module's own ELF file and the process that mapped it. Out: opened files. Each place is
// looked at under the target's root first, then on the host. A file found by build id must carry
// it; one found by .gnu_debuglink must have the build id or the CRC; a .dwo or .dwp must hold the
// unit's id (checked by its reader). Nothing is asked of the network unless debuginfod was asked
// for. Threads: none; guarded by the module's lock.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "elf/elf_file.h"

namespace assay::symbol {

class FileAccess;
using elf::ByteSource;
using elf::DebugLink;
using elf::ElfFile;
using elf::SectionBytes;

struct FoundFile {
  std::unique_ptr<ElfFile> file;  // null: none
  std::string path;
};

class DebugFiles {
 public:
  DebugFiles(pid_t pid, std::string module_path, std::shared_ptr<FileAccess> files, bool debuginfod)
      : pid_(pid), module_path_(std::move(module_path)), files_(std::move(files)), debuginfod_(debuginfod) {}

  FoundFile find_debug(ElfFile& module, const std::string& build_id);
  // The file that dwz moved shared entries to; `of` is the file that refers to it, found at `path`.
  FoundFile find_alt(ElfFile& of, const std::string& path);
  FoundFile find_dwo(const std::string& comp_dir, const std::string& name);
  FoundFile find_dwp();

  // Why something that was looked for is missing; empty when nothing went wrong.
  const std::string& problem() const { return problem_; }

 private:
  FoundFile open(const std::string& path);
  FoundFile open_with_build_id(const std::string& path, const std::string& build_id);
  FoundFile find_by_link(const DebugLink& link, const std::string& build_id);
  FoundFile ask_debuginfod(const std::string& build_id);

  const pid_t pid_;
  const std::string module_path_;
  const std::shared_ptr<FileAccess> files_;
  const bool debuginfod_;
  std::string problem_;
};

}  // namespace assay::symbol
