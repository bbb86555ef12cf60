// Letters beyond ASCII in Rust's mangled names.
//
// Pure functions; they hold against any input and never take or give more than about a thousand
// letters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::symbol {

void append_utf8(std::string& out, uint32_t code);

// RFC 3492, with Rust's "_" for "-", as UTF-8. Nothing when malformed.
std::optional<std::string> decode_punycode(std::string_view text);

}  // namespace assay::symbol
