// Opens the file behind a mapping as the target sees it: through its mount namespace, even when it
// was deleted or replaced, and only when it is the file that is really mapped.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

struct ModuleFile {
  UniqueFd fd;
  std::string
      opened_path;  // where it was found: "/proc/7/map_files/…", "/proc/7/root/usr/…", "/usr/…"
  std::string build_id;  // of the opened file; empty when it has none
};

// `path` as in /proc/PID/maps; `build_id` as known from the kernel's record, empty when unknown.
// Tries /proc/PID/map_files, then /proc/PID/root + path, then path itself; each candidate must
// carry the same build id (or, without one, be the mapped inode). pid 0: the host's path only.
Result<ModuleFile> open_module_file(pid_t pid, uint64_t start, uint64_t end,
                                    const std::string& path, const std::string& build_id);

// Opens a regular file as process `pid` sees it, with the rights of that process: what its user may not read cannot be
// opened. Links are resolved inside its root and never lead outside. pid 0: the host's own path, with the rights of
// the caller. The path is absolute. Only regular files are ever opened; a FIFO or a device is looked at and left alone.
Result<UniqueFd> open_in_root(pid_t pid, const std::string& path);
// The same path on the host, still with the rights of process `pid`; 0: with those of the caller.
Result<UniqueFd> open_on_host(pid_t pid, const std::string& path);

// Lowercase hex of the GNU build-id note of an ELF file, "" when it has none, an Error when it is
// no ELF file. Reads only headers and notes, bounds-checked.
Result<std::string> read_build_id(int fd);

// The vdso of this process: same kernel, same image. Bytes and build id.
struct VdsoImage {
  std::string bytes;
  std::string build_id;
};
const VdsoImage& vdso_image();

}  // namespace assay::os
