// Quantities as people write and read them: "30s", "1.5 MB", "12.3 µs", "4.2k", "61.0 %".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// "500ms", "30s", "2m", "1h", "250us", or a bare number of seconds. Negative and empty are errors.
Result<int64_t> parse_duration_ns(std::string_view text);

// "512k", "1M", "64KiB", "4096": binary multiples. Zero and empty are errors.
Result<uint64_t> parse_byte_size(std::string_view text);

std::string format_duration(int64_t ns);   // 812 ns, 12.3 µs, 4.56 ms, 7.89 s, 2 m 03 s, 1 h 02 m
std::string format_bytes(uint64_t bytes);  // 812 B, 1.5 kB, 44.0 MB (decimal)
std::string format_count(uint64_t count);  // 999, 12.3k, 4.56M
std::string format_percent(double share);  // 0.0 %, 3.4 %, 61.0 %, 100 %

}  // namespace assay
