#include "cli/flags/usage.h"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

TEST(Usage, SaysWhatIsWrongWithANumber) {
  CLI::Validator pid = whole_number(1, 4194304);
  for (auto [word, answer] :
       {std::pair{"4711", ""},
        {"abc", "'abc' is not a whole number"},
        {"12x", "'12x' is not a whole number"},
        {"1.5", "'1.5' is not a whole number"},
        {"", "'' is not a whole number"},
        {"0", "0 is not between 1 and 4194304"},
        {"-3", "-3 is not between 1 and 4194304"},
        {"99999999999999999999999", "99999999999999999999999 is not between 1 and 4194304"}}) {
    std::string text = word;
    EXPECT_EQ(pid(text), answer) << word;
  }
}

TEST(Usage, FindsTheNameThatWasMeant) {
  std::vector<std::string> names{"record", "report", "heap", "diff", "ab", "sql", "stat", "view"};
  EXPECT_EQ(nearest_name("recrod", names), "record");
  EXPECT_EQ(nearest_name("rep", names), "report");
  EXPECT_EQ(nearest_name("dif", names), "diff");
  EXPECT_EQ(nearest_name("stats", names), "stat");
  EXPECT_EQ(nearest_name("profile", names), "");
  EXPECT_EQ(nearest_name("x", names), "");
}

}  // namespace
}  // namespace assay::cli
