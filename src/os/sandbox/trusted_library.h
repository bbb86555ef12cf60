// find_trusted_library(): a library of the system's, by its name, that nobody but root can have
// changed.
//
// For libraries that are loaded at run time into a process of ours. Only the system's own folders
// are searched: no environment variable, no folder of a target. The file, after its links are
// followed, and every folder on its way must belong to root and be writable for root alone. In: a
// file name. Out: the path without links. Threads: any. Failures: an Error that says what was
// wrong; ENOENT as its code when no folder has such a file.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace assay::os {

std::span<const char* const> system_library_folders();

Result<std::string> find_trusted_library(
    const std::string& name, std::span<const char* const> folders = system_library_folders());

// The path without links, if nobody but root can have changed what stands there.
Result<std::string> check_trusted_file(const std::string& path);

}  // namespace assay::os
