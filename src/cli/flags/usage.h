// What a wrong command line is told: which word is wrong, why, and what was probably meant.
//
// Pure functions; never fail.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace assay::cli {

// A check for options: "abc is not a whole number", "0 is not between 1 and 65535".
CLI::Validator whole_number(uint64_t least, uint64_t most);

// The name that a misspelt one is closest to; empty when none is near.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace assay::cli
