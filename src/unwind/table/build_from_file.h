// Builds the unwind table of the module that an open file holds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::unwind {

Result<std::vector<std::byte>> build_from_file(int fd, const std::string& build_id);

}  // namespace assay::unwind
