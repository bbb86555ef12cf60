#include "base/byte_reader.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace assay {
namespace {

using namespace std::literals;

TEST(ByteReader, ReadsNumbersInOrder) {
  ByteReader in("\x01\x02\x03\x04\x05\x06\x07\x08\x09"sv);
  EXPECT_EQ(in.u8(), 1u);
  EXPECT_EQ(in.u16(), 0x0302u);
  EXPECT_EQ(in.u24(), 0x060504u);
  EXPECT_EQ(in.offset(), 6u);
  EXPECT_EQ(in.sized(2), 0x0807u);
  EXPECT_EQ(in.left(), 1u);
  EXPECT_TRUE(in.ok());
}

TEST(ByteReader, AReadThatDoesNotFitFailsForGood) {
  ByteReader in("\x01\x02\x03"sv);
  EXPECT_EQ(in.u8(), 1u);
  EXPECT_EQ(in.failed_at(), 1u);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_EQ(in.failed_at(), 1u);
  EXPECT_FALSE(in.ok());
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(in.left(), 0u);
  EXPECT_EQ(in.u8(), 0u) << "what would have fitted is not read any more";
  in.seek(0);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.u8(), 0u);
}

TEST(ByteReader, SeeksSkipsAndSizesAreChecked) {
  EXPECT_FALSE(ByteReader("abc"sv, 4).ok());
  EXPECT_TRUE(ByteReader("abc"sv, 3).ok());
  ByteReader skipped("abc"sv);
  skipped.skip(UINT64_MAX);
  EXPECT_FALSE(skipped.ok());
  ByteReader taken("abc"sv, 1);
  EXPECT_TRUE(taken.bytes(UINT64_MAX).empty());
  EXPECT_FALSE(taken.ok());
  ByteReader width("abcdefgh"sv);
  EXPECT_EQ(width.sized(3), 0u);
  EXPECT_FALSE(width.ok());
}

TEST(ByteReader, Leb128) {
  ByteReader unsigned_one("\xe5\x8e\x26"sv);
  EXPECT_EQ(unsigned_one.uleb(), 624485u);
  ByteReader signed_one("\xc0\xbb\x78"sv);
  EXPECT_EQ(signed_one.sleb(), -123456);
  ByteReader small("\x3f\x40"sv);
  EXPECT_EQ(small.sleb(), 63);
  EXPECT_EQ(small.sleb(), -64);
  ByteReader padded("\x81\x80\x80\x00"sv);
  EXPECT_EQ(padded.uleb(), 1u);
  EXPECT_TRUE(padded.ok());
  ByteReader cut("\x80\x80"sv);
  EXPECT_EQ(cut.uleb(), 0u);
  EXPECT_FALSE(cut.ok());
  std::string endless(40, '\x80');
  ByteReader without_end{std::string_view(endless)};
  EXPECT_EQ(without_end.sleb(), 0);
  EXPECT_FALSE(without_end.ok());
}

TEST(ByteReader, VarintsThatDoNotFit64BitsFail) {
  ByteReader largest("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
  EXPECT_EQ(largest.varint(), UINT64_MAX);
  EXPECT_TRUE(largest.ok());
  ByteReader larger("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv);
  EXPECT_EQ(larger.varint(), 0u);
  EXPECT_FALSE(larger.ok());
}

TEST(ByteReader, Texts) {
  ByteReader in("one\0two"sv);
  EXPECT_EQ(in.text(), "one");
  ByteReader copy = in;
  EXPECT_EQ(in.text(), "") << "it does not end";
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(copy.last_text(), "two");
  EXPECT_TRUE(copy.ok());
  EXPECT_EQ(copy.left(), 0u);
}

TEST(ByteReader, TakesSpansOfBytes) {
  std::array<uint8_t, 4> octets{1, 2, 3, 4};
  ByteReader in{std::span<const uint8_t>(octets)};
  auto part = in.take(3);
  ASSERT_EQ(part.size(), 3u);
  EXPECT_EQ(part[2], std::byte{3});
  EXPECT_EQ(ByteReader(part, 1).u8(), 2u);
  EXPECT_TRUE(in.take(2).empty());
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace assay
