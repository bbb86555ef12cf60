#include "view/data/columns.h"

#include "view/data/read_columns.h"

namespace assay::view {
namespace {

TEST(Columns, NumbersDifferencesAndTextsComeBack) {
  Columns table("things");
  table.scalar("from", -5);
  std::vector<uint64_t> numbers{0, 127, 128, 300'000, UINT64_MAX >> 1};
  std::vector<int64_t> deltas{5, -7, INT64_MAX / 2, 0};
  std::vector<std::string_view> texts{"", "a\tb", std::string_view("\0\xff", 2)};
  table.add("n", numbers);
  table.add_deltas("d", deltas);
  table.add_strings("s", texts);
  ReadTable read = read_columns(table.finish());
  EXPECT_EQ(read.header["kind"], "things");
  EXPECT_EQ(read.header["scalars"]["from"], -5);
  EXPECT_EQ(read.numbers["n"], std::vector<int64_t>(numbers.begin(), numbers.end()));
  EXPECT_EQ(read.numbers["d"], deltas);
  EXPECT_EQ(read.texts["s"], std::vector<std::string>(texts.begin(), texts.end()));
}

TEST(Columns, AnEmptyTableHasAHeader) {
  ReadTable read = read_columns(Columns("none").finish());
  EXPECT_TRUE(read.header["columns"].empty());
}

}  // namespace
}  // namespace assay::view
