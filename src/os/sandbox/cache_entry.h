// open_cache_entry(): a file of Assay's caches, for a process that is not trusted.
//
// A confined import may read what earlier captures kept: unwind tables ("unwind/NAME.vN") and the
// kernel's symbols ("kernel-NAME.symbols"), where NAME is made of hexadecimal digits and dashes. It
// can store nothing. In: the caches' folder and the path that was asked for. Out: a descriptor to
// read from. An entry is a regular file that belongs to the caller; so do the folders on the way to
// it; nobody else can write to any of them, and none is a link. Threads: any. Failures: an Error
// that says what was refused.
#pragma once

#include <string>

#include "base/file_door.h"

namespace assay::os {

Result<FoundFile> open_cache_entry(const std::string& folder, const std::string& path);

}  // namespace assay::os
