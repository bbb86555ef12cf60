// Query text: names and values as addresses carry them, "a=1&b=x%20y".
//
// In and out: text of any origin. Pure. Failures: a percent sign without two hex digits.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

using Parameters = std::map<std::string, std::string>;

// "a=1&b=x+y&c" → a: "1", b: "x y", c: "". Of a name that stands there twice the last value holds.
Result<Parameters> parse_query(std::string_view query);

// The other way: escapes all that does not stand for itself in a value.
std::string escape_query(std::string_view value);

}  // namespace assay
