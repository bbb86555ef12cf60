// Words of a line as a shell would split it: blanks separate words, '…' "…" and \ quote. No
// variables, no globs, no commands. An open quote is an Error. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::load {

Result<std::vector<std::string>> split_arguments(std::string_view line);

}  // namespace assay::load
