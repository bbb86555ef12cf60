#include "base/units.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ParseDuration, UnderstandsTheUnitsPeopleWrite) {
  EXPECT_EQ(parse_duration_ns("30s").value(), 30'000'000'000);
  EXPECT_EQ(parse_duration_ns("500ms").value(), 500'000'000);
  EXPECT_EQ(parse_duration_ns("1.5s").value(), 1'500'000'000);
  EXPECT_EQ(parse_duration_ns("250us").value(), 250'000);
  EXPECT_EQ(parse_duration_ns("2m").value(), 120'000'000'000);
  EXPECT_EQ(parse_duration_ns("1h").value(), 3'600'000'000'000);
  EXPECT_EQ(parse_duration_ns("10").value(), 10'000'000'000);
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* bad : {"", "s", "-1s", "3 s", "10x", "nan", "inf", "1e30s", "5ss"}) {
    auto parsed = parse_duration_ns(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_NE(parsed.error().what.find("30s"), std::string::npos) << "shows an example";
  }
}

TEST(FormatDuration, KeepsThreeDigits) {
  EXPECT_EQ(format_duration(812), "812 ns");
  EXPECT_EQ(format_duration(12'340), "12.3 µs");
  EXPECT_EQ(format_duration(4'560'000), "4.56 ms");
  EXPECT_EQ(format_duration(7'890'000'000), "7.89 s");
  EXPECT_EQ(format_duration(123'000'000'000), "2 m 03 s");
  EXPECT_EQ(format_duration(3'720'000'000'000), "1 h 02 m");
  EXPECT_EQ(format_duration(-4'560'000), "-4.56 ms");
  EXPECT_EQ(format_duration(999'999), "1.00 ms");
}

TEST(FormatQuantities, AreShort) {
  EXPECT_EQ(format_bytes(812), "812 B");
  EXPECT_EQ(format_bytes(1'500), "1.50 kB");
  EXPECT_EQ(format_bytes(44'000'000), "44.0 MB");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(12'345), "12.3k");
  EXPECT_EQ(format_count(4'560'000), "4.56M");
  EXPECT_EQ(format_percent(0.034), "3.4 %");
  EXPECT_EQ(format_percent(1.0), "100 %");
}

TEST(ParseByteSize, TakesBinaryMultiples) {
  EXPECT_EQ(*parse_byte_size("512k"), 512u << 10);
  EXPECT_EQ(*parse_byte_size("1M"), 1u << 20);
  EXPECT_EQ(*parse_byte_size("64KiB"), 64u << 10);
  EXPECT_EQ(*parse_byte_size("4096"), 4096u);
  for (const char* wrong : {"", "k", "0", "-1", "1.5M", "12x", "99999999999999999999"})
    EXPECT_FALSE(parse_byte_size(wrong)) << wrong;
}

}  // namespace
}  // namespace assay
