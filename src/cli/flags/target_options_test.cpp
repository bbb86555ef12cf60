#include "cli/flags/target_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TargetOptionsTest : public ::testing::Test {
 protected:
  TargetOptionsTest() { options_.add_to(parser_); }
  void parse(std::vector<std::string> words) {
    std::ranges::reverse(words);  // as the parser wants them
    parser_.parse(words);
  }
  CLI::App parser_;
  TargetOptions options_;
};

TEST_F(TargetOptionsTest, EachWayToNameATargetIsReadAndWrittenBack) {
  parse({"--port", "8000"});
  EXPECT_TRUE(options_.given());
  EXPECT_EQ(options_.spec({})->port, 8000);
  EXPECT_TRUE(options_.spec({})->include_children);
  EXPECT_EQ(options_.text({}), "--port 8000");
}

TEST_F(TargetOptionsTest, SeveralProcessesAreOneKind) {
  parse({"--pid", "12", "--pid", "34", "--no-children"});
  auto spec = options_.spec({});
  ASSERT_TRUE(spec);
  EXPECT_THAT(spec->pids, ElementsAre(12, 34));
  EXPECT_FALSE(spec->include_children);
  EXPECT_EQ(options_.text({}), "--pid 12,34");
}

TEST_F(TargetOptionsTest, NoneOrTwoKindsAreWrongUsage) {
  EXPECT_FALSE(options_.given());
  auto none = options_.spec({});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().remedy, HasSubstr("--port 8000"));
  parse({"--name", "server"});
  EXPECT_TRUE(options_.spec({}));
  EXPECT_FALSE(options_.spec({"./server"})) << "and a command";
}

TEST_F(TargetOptionsTest, ACommandIsATarget) {
  auto spec = options_.spec({"./server", "--threads", "4"});
  ASSERT_TRUE(spec);
  EXPECT_THAT(spec->command, ElementsAre("./server", "--threads", "4"));
  EXPECT_EQ(options_.text({"./server", "--threads", "4"}), "-- ./server --threads 4");
}

TEST_F(TargetOptionsTest, NumbersThatCannotBeAreRefused) {
  EXPECT_THROW(parse({"--port", "0"}), CLI::ParseError);
  EXPECT_THROW(parse({"--port", "65536"}), CLI::ParseError);
  EXPECT_THROW(parse({"--pid", "-1"}), CLI::ParseError);
  EXPECT_THROW(parse({"--pid", "12x"}), CLI::ParseError);
}

}  // namespace
}  // namespace assay::cli
