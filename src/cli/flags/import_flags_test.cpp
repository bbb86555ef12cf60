#include "cli/flags/import_flags.h"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

formats::ReadOptions parsed(std::vector<std::string> arguments) {
  CLI::App parser;
  ImportFlags flags;
  flags.add_to(parser);
  parser.parse(std::move(arguments));
  session::ImportOptions options;
  flags.fill(options);
  return options.read;
}

// Readers ask whether the user said it: a file's name may say it as well.
TEST(ImportFlags, AUnitIsSaidOnlyWhenItIs) {
  EXPECT_FALSE(parsed({}).unit_said);
  EXPECT_TRUE(parsed({"samples", "--unit"}).unit_said);  // the parser takes them last first
  EXPECT_EQ(parsed({"samples", "--unit"}).unit_ns, 0);
  EXPECT_EQ(parsed({"us", "--unit"}).unit_ns, 1000);
}

}  // namespace
}  // namespace assay::cli
