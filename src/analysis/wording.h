// Words for shares, the same wherever a sentence names the largest of several parts. Pure.
#pragma once

#include <string_view>

namespace assay::analysis {

// "most" is more than half.
inline std::string_view largest_part(double share) {
  return share > 0.5 ? "most of it" : "the largest part";
}

}  // namespace assay::analysis
