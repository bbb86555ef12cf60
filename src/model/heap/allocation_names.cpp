#include "model/heap/allocation_names.h"

#include <algorithm>
#include <array>

#include "model/heap/allocation_list.h"

namespace assay::model {
namespace {

constexpr std::array<std::string_view, 7> kPlumbing{"std::",
                                                    "__gnu_cxx::",
                                                    "void std::",
                                                    "bool std::",
                                                    "char* std::",
                                                    "google::protobuf::Arena",
                                                    "absl::container_internal::"};

std::string_view bare(std::string_view name) {
  size_t end = name.find_first_of("(@");
  if (end == 0) return name;
  return name.substr(0, end);
}

}  // namespace

bool is_allocation_function(std::string_view name) {
  for (std::string_view prefix : kAllocationPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return std::ranges::find(kAllocationFunctions, bare(name)) != kAllocationFunctions.end();
}

bool is_library_plumbing(std::string_view name) {
  return std::any_of(kPlumbing.begin(), kPlumbing.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string allocation_functions_pattern() {
  return std::string(kAllocationPattern);
}

}  // namespace assay::model
