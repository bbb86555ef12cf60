#include "report/printable.h"

#include <gtest/gtest.h>

namespace assay::report {
namespace {

TEST(Printable, ControlCharactersAreShownNotSent) {
  EXPECT_EQ(printable("a\x1b[31mb\n\t\x7f"), "a\\x1b[31mb\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // C1: the one-character CSI
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "x"),
            "\\u202ex");  // right-to-left override
  EXPECT_EQ(printable(std::string_view("\0z", 2)), "\\x00z");
}

TEST(Printable, InvalidUtf8IsReplacedByteByByte) {
  EXPECT_EQ(printable("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(printable("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd");                  // overlong NUL
  EXPECT_EQ(printable("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // surrogate
  EXPECT_EQ(printable("ok\xe2\x82"), "ok\xef\xbf\xbd\xef\xbf\xbd");              // cut short
  EXPECT_EQ(printable("grün→"), "grün→");
}

TEST(Printable, WidthCountsColumns) {
  EXPECT_EQ(display_width("grün"), 4);
  EXPECT_EQ(display_width("漢字"), 4);
  EXPECT_EQ(display_width("e\xcc\x81"), 1);
  EXPECT_EQ(display_width("\x1b[1mab\x1b[0m"), 2);
}

TEST(Printable, ElisionKeepsBothEnds) {
  EXPECT_EQ(elide_middle("short", 10), "short");
  EXPECT_EQ(elide_middle("abcdefghijklmnop", 11), "abcd…klmnop");
  EXPECT_EQ(display_width(elide_middle("漢字漢字漢字漢字", 8)), 7);  // wide characters do not split
  EXPECT_EQ(elide_middle("abc", 0), "");
  EXPECT_EQ(elide_middle("abc", 1), "…");
  EXPECT_EQ(left("ab", 4), "ab  ");
  EXPECT_EQ(right("ab", 4), "  ab");
}

TEST(Printable, FunctionNamesLoseWhatMattersLeast) {
  std::string name = "std::vector<int, std::allocator<int> >::push_back(int&&)";
  EXPECT_EQ(function_name(name, 100), "std::vector<…>::push_back(int&&)");
  EXPECT_EQ(function_name(name, 28), "std::vector<…>::push_back");
  EXPECT_EQ(display_width(function_name(name, 10)), 10);
  EXPECT_EQ(display_width(function_name(std::string(100'000, '<'), 60)), 60);
}

}  // namespace
}  // namespace assay::report
