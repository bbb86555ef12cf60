// FileAccess: how the symbolizer comes by the files that it reads.
//
// Reading a file and being allowed to open it are two things. A confined process reads, and asks a
// process that may open files; everything else opens files directly, with the rights of the process
// that they belong to, never with its own. Threads: called by several. Failures: an Error in words,
// as for a file that is not there.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/address_space.h"
#include "model/module.h"
#include "os/process/module_file.h"

namespace assay::symbol {

struct NamedFile {
  UniqueFd fd;
  std::string path;
};

class FileAccess {
 public:
  virtual ~FileAccess() = default;
  // The file behind a mapping of a living process; pid 0: the host's file of that path.
  virtual Result<os::ModuleFile> open_module(pid_t pid, const model::Mapping& mapping,
                                             const model::Module& module) = 0;
  // A regular file that a module of process `pid` names: under the root of the process, or on the
  // host.
  virtual Result<UniqueFd> open(pid_t pid, const std::string& path, bool on_host) = 0;
  // What a runtime writes about the code it generates. The owner is the user of the process, or
  // root.
  virtual Result<NamedFile> open_perf_map(pid_t pid) = 0;
  virtual Result<NamedFile> open_jit_dump(pid_t pid) = 0;
  // Asks the servers of DEBUGINFOD_URLS.
  virtual Result<NamedFile> ask_debuginfod(const std::string& build_id) = 0;
};

// Opens files in this process.
std::shared_ptr<FileAccess> direct_file_access();

}  // namespace assay::symbol
