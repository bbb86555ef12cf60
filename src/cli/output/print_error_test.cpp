#include <gtest/gtest.h>

#include "cli/commands.h"

namespace assay::cli {
namespace {

std::string printed(const Error& error) {
  testing::internal::CaptureStderr();
  print_error(error);
  return testing::internal::GetCapturedStderr();
}

// Messages quote what targets and files say: a terminal must show it, not do it.
TEST(PrintError, ShowsWhatATerminalWouldObey) {
  std::string text = printed({"the target said \x1b]0;owned\x07\x1b[2J", "rm \x1b[31m\xe2\x80\xae",
                              0, "log \x1b[8m\nline\ttwo\r"});
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << int{c};
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_NE(text.find("owned"), std::string::npos);
  EXPECT_NE(text.find("\nline two"), std::string::npos) << "its own lines stay lines";
}

TEST(PrintError, KeepsPlainWords) {
  EXPECT_EQ(printed({"größer … than 5 µs", "assay doctor", 0}),
            "assay: größer … than 5 µs\n  try: assay doctor\n");
}

}  // namespace
}  // namespace assay::cli
