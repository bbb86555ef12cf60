#include "load/argument_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::load {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ArgumentLine, Words) {
  EXPECT_THAT(*split_arguments("http://h/ -c 8\t--json"),
              ElementsAre("http://h/", "-c", "8", "--json"));
  EXPECT_THAT(*split_arguments("  "), IsEmpty());
  EXPECT_THAT(*split_arguments(R"(-d '{"a b": "c"}' "x y" '')"),
              ElementsAre("-d", R"({"a b": "c"})", "x y", ""));
  EXPECT_THAT(*split_arguments(R"(a\ b "c\"d" 'e\f' "g\h")"),
              ElementsAre("a b", "c\"d", "e\\f", "g\\h"));
  EXPECT_THAT(*split_arguments("-H'A: b'"), ElementsAre("-HA: b"));
}

TEST(ArgumentLine, OpenQuotes) {
  EXPECT_FALSE(split_arguments("a 'b"));
  EXPECT_FALSE(split_arguments("a \"b'"));
}

}  // namespace
}  // namespace assay::load
