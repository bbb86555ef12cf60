// Decompression of debug sections (zlib, zstd) and of .gnu_debugdata (xz), with limits.
//
// A result larger than `max_bytes`, or one that does not have the stated size, is an Error: a small
// hostile file cannot fill the memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::elf {

Result<std::string> inflate_zlib(std::string_view bytes, uint64_t size);
Result<std::string> inflate_zstd(std::string_view bytes, uint64_t size);
Result<std::string> inflate_xz(std::string_view bytes, uint64_t max_bytes);

}  // namespace assay::elf
