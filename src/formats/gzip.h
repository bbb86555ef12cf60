// gzip: bytes compressed and back, in memory, with a limit on what may come out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::formats {

Result<std::string> gzip(std::string_view bytes);
bool is_gzip(std::string_view bytes);
// Several members one after another are one stream. Failures: damaged or truncated data, with the
// offset at which it was found; more than `most_bytes` of output.
Result<std::string> gunzip(std::string_view bytes, size_t most_bytes);

}  // namespace assay::formats
