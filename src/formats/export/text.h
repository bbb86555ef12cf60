// Text of foreign origin (symbol names, paths, thread names) made safe to put into a file.
//
// Pure functions. What comes out is valid UTF-8 without control characters, and without the marks
// that make a reader's screen show letters in another order than they stand.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::formats {

inline constexpr size_t kLongestName =
    2'000;  // characters; what is longer is cut, with an ellipsis

// Invalid bytes, control and direction characters become U+FFFD; line ends and tabs a space.
std::string clean_text(std::string_view text, size_t most_characters = kLongestName);

// clean_text with & < > " ' escaped: for XML text and attributes.
std::string xml_text(std::string_view text, size_t most_characters = kLongestName);

// A quoted JSON string with everything escaped that must be, and "</" besides.
std::string json_text(std::string_view text, size_t most_characters = kLongestName);

// clean_text with ';' replaced: one frame of a folded stack.
std::string folded_text(std::string_view text, size_t most_characters = kLongestName);

// Clean text for a cell of a table: what a spreadsheet would take for a formula begins with '.
std::string harmless_cell(std::string clean);

// A file name that stays in its directory: letters, digits, '.', '_', '-'; never empty or hidden.
std::string file_name_text(std::string_view text);

size_t character_count(std::string_view utf8);

}  // namespace assay::formats
