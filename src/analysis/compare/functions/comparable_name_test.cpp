#include "analysis/compare/functions/comparable_name.h"

#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

TEST(ComparableName, DropsWhatABuildAdds) {
  for (auto [name, wanted] : {std::pair<const char*, const char*>{"work", "work"},
                              {"work.isra.0", "work"},
                              {"work.part.3.cold", "work"},
                              {"work.constprop.0.isra.1", "work"},
                              {"f(int) [clone .cold]", "f(int)"},
                              {"work.llvm.1234567", "work"},
                              {"core::fmt::write::h0123456789abcdef", "core::fmt::write"},
                              {"main.(*Server).Serve", "main.(*Server).Serve"},
                              {"runtime.main", "runtime.main"},
                              {"v1.2", "v1.2"},
                              {"", ""}}) {
    EXPECT_EQ(comparable_name(name), wanted);
  }
}

}  // namespace
}  // namespace assay::analysis
