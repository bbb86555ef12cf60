#include "base/query_text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ParseQuery, SplitsAndUnescapes) {
  auto query = parse_query("a=1&b=x%20y+z&c&=q&d=%3D%26");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->at("a"), "1");
  EXPECT_EQ(query->at("b"), "x y z");
  EXPECT_EQ(query->at("c"), "");
  EXPECT_EQ(query->at("d"), "=&");
  EXPECT_EQ(query->size(), 4u);
}

TEST(ParseQuery, RefusesBrokenEscapes) {
  EXPECT_FALSE(parse_query("a=%"));
  EXPECT_FALSE(parse_query("a=%4"));
  EXPECT_FALSE(parse_query("a=%zz"));
}

TEST(EscapeQuery, EveryByteComesBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  auto back = parse_query("v=" + escape_query(all));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->at("v"), all);
}

}  // namespace
}  // namespace assay
