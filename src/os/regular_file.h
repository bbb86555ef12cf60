// Opens files that others can exchange: regular files only, and nothing else is ever opened.
//
// A path is resolved to a handle (O_PATH), which opens nothing: no FIFO waits, no device starts, no
// tape rewinds. The handle is looked at, and only what is a regular file is opened through it, so
// that what was looked at is what is read. In: a path, or a handle. Out: a descriptor to read from.
// Threads: any. Failures: an Error with errno of the path, or that it is not a regular file.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

enum class Links : uint8_t { followed, refused };  // a link as the path's last part

Result<UniqueFd> open_regular(const std::string& path, Links links = Links::followed);
// `handle` was opened with O_PATH; `shown` names it in an Error. An invalid one: errno says why.
Result<UniqueFd> open_regular(UniqueFd handle, const std::string& shown);

}  // namespace assay::os
