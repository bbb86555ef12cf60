// The name of a run file when none was given: TARGET-DATE-TIME.assay.
#pragma once

#include <string>

namespace assay::cli {

std::string default_output(const std::string& target);

}  // namespace assay::cli
