// gzip: bytes compressed and back, in memory, with a limit on what may come out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::formats {

Result<std::string> gzip(std::string_view bytes);
bool is_gzip(std::string_view bytes);
// What the first `enough` bytes of output are, or a little more, or all there are; where the data
// end early or are damaged further on, what comes out before that. Failures: nothing comes out.
Result<std::string> gunzip_head(std::string_view bytes, size_t enough);
// Several members one after another are one stream. Failures: damaged or truncated data, with the
// offset at which it was found; more than `most_bytes` of output.
Result<std::string> gunzip(std::string_view bytes, size_t most_bytes);

}  // namespace assay::formats
