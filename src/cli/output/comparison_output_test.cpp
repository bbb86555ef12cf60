#include "cli/output/comparison_output.h"

#include <gmock/gmock.h>

#include "cli/commands.h"

namespace assay::cli {
namespace {

analysis::Comparison with_cpu(double ratio, analysis::Outcome outcome) {
  analysis::Comparison comparison;
  analysis::Measure cpu;
  cpu.id = "cpu_per_request";
  cpu.ratio = ratio;
  cpu.outcome = outcome;
  comparison.measures.push_back(cpu);
  return comparison;
}

std::vector<ChangeLimit> limits(const std::vector<std::string>& texts) {
  auto parsed = parse_limits(texts);
  EXPECT_TRUE(parsed);
  return parsed ? *parsed : std::vector<ChangeLimit>{};
}

TEST(FailOn, ReadsBothDirections) {
  auto two = limits({"cpu_per_request>+3%", "throughput<-2.5%"});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_TRUE(two[0].above);
  EXPECT_EQ(two[0].percent, 3);
  EXPECT_FALSE(two[1].above);
  EXPECT_EQ(two[1].percent, -2.5);
  EXPECT_EQ(limits({"throughput<2%"})[0].percent, -2);
  EXPECT_EQ(limits({"lock[a<b> >c]_per_request>5"})[0].measure, "lock[a<b> >c]_per_request");
}

TEST(FailOn, RefusesWhatCouldNeverFailOrAlwaysWould) {
  for (const char* text : {"cpu_per_request", ">+3%", "cpu_per_request>", "cpu_per_request>+nan%",
                           "cpu_per_request>+inf%", "cpu_per_request>+-3%", "cpu_per_request>-3%",
                           "throughput<+3%", "cpu_per_request>3x", "cpu>+3%", "latency_p98>+3%"})
    EXPECT_FALSE(parse_limits({text})) << text;
}

TEST(FailOn, FailsOnlyOnWhatIsShownAndBeyond) {
  using enum analysis::Outcome;
  auto limit = limits({"cpu_per_request>+3%"});
  EXPECT_EQ(judge_limits(with_cpu(1.1, higher), limit), kFailedOn);
  EXPECT_EQ(judge_limits(with_cpu(1.02, higher), limit), kDone);
  EXPECT_EQ(judge_limits(with_cpu(1.1, undecided), limit), kDone);
  EXPECT_EQ(judge_limits(with_cpu(0.8, lower), limit), kDone);
  EXPECT_EQ(judge_limits(with_cpu(0.8, lower), limits({"cpu_per_request<-3%"})), kFailedOn);
}

TEST(FailOn, AMissingMeasureDoesNotHideAPassedLimit) {
  using enum analysis::Outcome;
  EXPECT_EQ(judge_limits(with_cpu(1.1, higher), limits({"cpu_per_request>+3%", "rss>+3%"})),
            kFailedOn);
  EXPECT_EQ(judge_limits(with_cpu(1.1, higher), limits({"rss>+3%", "cpu_per_request>+3%"})),
            kFailedOn);
  EXPECT_EQ(judge_limits(with_cpu(1, no_change), limits({"rss>+3%"})), kFailed);
}

TEST(ComparisonFormat, GoesByTheFilesName) {
  EXPECT_EQ(format_of("x.html"), "html");
  EXPECT_EQ(format_of("a/b.svg"), "svg");
  EXPECT_EQ(format_of("comment.md"), "md");
  EXPECT_EQ(format_of("x.txt"), "text");
  EXPECT_EQ(format_of(""), "text");
}

TEST(ComparedFiles, OneFileCountsOnceASide) {
  auto twice = refuse_repeated({"a.assay", "./a.assay"}, {"b.assay"});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().what, ::testing::HasSubstr("is given twice"));
}

}  // namespace
}  // namespace assay::cli
