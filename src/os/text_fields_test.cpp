#include "os/text_fields.h"

#include <gtest/gtest.h>

#include "os/fake_tree.h"

namespace assay::os {
namespace {

TEST(TextFields, NumbersAreWholeOrNothing) {
  EXPECT_EQ(parse_u64(" 42\n"), 42u);
  EXPECT_EQ(parse_i64("-1"), -1);
  EXPECT_EQ(parse_hex("1F90"), 0x1f90u);
  for (const char* bad : {"", " ", "12x", "x", "-1", "18446744073709551616", "1 2"}) {
    EXPECT_FALSE(parse_u64(bad)) << bad;
  }
}

TEST(TextFields, FieldNeedsItsWholeKey) {
  const char* text = "nr_periods_all 3\nnr_periods 7\nModel name\t: Big CPU\nEmpty:\n";
  EXPECT_EQ(field_after(text, "nr_periods"), "7");
  EXPECT_EQ(field_after(text, "Model name"), "Big CPU");
  EXPECT_EQ(field_after(text, "Empty"), "");
  EXPECT_EQ(field_after(text, "absent"), "");
  EXPECT_EQ(field_after("", "absent"), "");
}

TEST(TextFields, CpuListsAreCounted) {
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7u);
  EXPECT_EQ(count_cpu_list("0"), 1u);
  for (const char* bad : {"", "3-1", "a", "0-99999999999", "1,,2", "0-1048575,0-1048575"}) {
    EXPECT_FALSE(count_cpu_list(bad)) << bad;
  }
}

TEST(TextFields, FilesAreCutAtTheLimit) {
  FakeTree tree;
  tree.write("a", std::string(20'000, 'x'));
  EXPECT_EQ(read_text_file(tree.root() + "/a")->size(), 20'000u);
  EXPECT_EQ(read_text_file(tree.root() + "/a", 9'000)->size(), 9'000u);
  EXPECT_FALSE(read_text_file(tree.root() + "/absent"));
  EXPECT_FALSE(read_text_file(tree.root())) << "a directory is no file";
}

TEST(TextFields, SplitsKeepWhatTheyShould) {
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(split_words("  a \t b\n").size(), 2u);
  EXPECT_EQ(trim(" \n"), "");
}

}  // namespace
}  // namespace assay::os
