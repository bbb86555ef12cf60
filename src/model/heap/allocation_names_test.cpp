#include "model/heap/allocation_names.h"

#include <regex>

#include <gtest/gtest.h>

namespace assay::model {
namespace {

constexpr const char* kAllocate[] = {"malloc",
                                     "malloc@plt",
                                     "operator new",
                                     "operator new[]",
                                     "std::__new_allocator<char>::allocate",
                                     "__gnu_cxx::new_allocator<std::string>::allocate",
                                     "std::allocator_traits<std::allocator<int> >::allocate",
                                     "zmalloc",
                                     "zmalloc_usable"};
constexpr const char* kDoMore[] = {"malloc_report", "operator+", "kv::Store::put", "remalloc",
                                   "std::vector<char>::reserve"};

TEST(AllocationNames, TellAllocationFromItsCallers) {
  for (const char* name : kAllocate) EXPECT_TRUE(is_allocation_function(name)) << name;
  for (const char* name : kDoMore) EXPECT_FALSE(is_allocation_function(name)) << name;
  EXPECT_TRUE(is_allocation_function("operator new(unsigned long)"));
  EXPECT_TRUE(is_library_plumbing("std::vector<char>::reserve(unsigned long)"));
  EXPECT_FALSE(is_library_plumbing("kv::Store::put(int)"));
}

// Readers of pprof match whole names without parameters.
TEST(AllocationNames, ThePatternSaysTheSame) {
  std::regex pattern(allocation_functions_pattern());
  for (const char* name : kAllocate) {
    if (std::string_view(name).contains('@')) continue;
    EXPECT_TRUE(std::regex_match(name, pattern)) << name;
  }
  for (const char* name : kDoMore) EXPECT_FALSE(std::regex_match(name, pattern)) << name;
}

}  // namespace
}  // namespace assay::model
