// file_group: the group that may read the files that Assay writes, besides their owner.
//
// None by default: files are for their owner alone (mode 0600). With a group they have mode 0640 and
// belong to it, whatever the umask. Chosen once, before files are made. Threads: const after that.
// Failures: a group that does not exist, or that this user may not give files to.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

// By name or number.
Result<void> choose_file_group(const std::string& group);
bool has_file_group();

// Gives a new file its mode, and its group where one was chosen.
Result<void> set_access(int fd, const std::string& path);

}  // namespace assay
