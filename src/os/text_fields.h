// Numbers, words and lines out of the kernel's small text files, without trusting them.
//
// In: text as the kernel wrote it, or a path; out: values, or nullopt / "" when they are not there.
// Threads: pure functions. Files are read whole up to a limit; a longer one is cut there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::os {

inline constexpr size_t kTextFileLimitBytes = size_t{4} << 20;

// The file's content, nullopt when it cannot be opened or read.
std::optional<std::string> read_text_file(const std::string& path,
                                          size_t limit_bytes = kTextFileLimitBytes);

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
std::vector<std::string_view> split_words(std::string_view text);  // at spaces and tabs, no empties

std::optional<uint64_t> parse_u64(std::string_view text);  // the whole trimmed text, decimal
std::optional<int64_t> parse_i64(std::string_view text);
std::optional<uint64_t> parse_hex(std::string_view text);

// The value after `key` in text made of lines "key value" or "key: value"; "" when it is not there.
std::string_view field_after(std::string_view text, std::string_view key);

// How many CPUs a list such as "0-3,8,10-11" names; nullopt when it is no such list.
std::optional<uint32_t> count_cpu_list(std::string_view text);

}  // namespace assay::os
