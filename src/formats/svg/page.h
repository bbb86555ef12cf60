// The fixed parts of a flame graph's SVG: its style and its script.
#pragma once

#include <string_view>

namespace assay::formats {

extern const std::string_view kFlameStyle;
extern const std::string_view kFlameScript;

}  // namespace assay::formats
