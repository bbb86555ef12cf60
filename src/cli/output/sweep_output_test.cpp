#include "cli/output/sweep_output.h"

#include <limits>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const SweepTitle kTitle{"--port 8000", "http://127.0.0.1:8000/", 5 * kNsPerSecond};

analysis::Scaling two_levels() {
  analysis::Scaling scaling;
  for (auto [clients, throughput] : {std::pair{1U, 100.0}, {8U, 400.0}}) {
    analysis::ScalingLevel level;
    level.clients = clients;
    level.throughput = throughput;
    level.p50_ns = 2 * kNsPerMs;
    level.p99_ns = 9 * kNsPerMs;
    level.generator_share = 0.5;
    level.generator_saturated = clients == 8;
    scaling.levels.push_back(level);
  }
  scaling.best = 1;
  scaling.no_fit = "three levels are needed";
  scaling.rows = {{"user", "user", {0.5, 1.5}, {1e6, 2e6}, analysis::Trend::grows},
                  {"lock", "blocked: lock", {0, 3}, {0, 5e6}, analysis::Trend::shrinks}};
  scaling.sentences = {"More clients do not help."};
  return scaling;
}

std::string line_with(const std::string& text, const std::string& word) {
  size_t at = text.find(word);
  if (at == std::string::npos) return "";
  size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(SweepText, TheBestLevelHasTheLongestBar) {
  std::string text = sweep_text(kTitle, two_levels());
  EXPECT_THAT(text, HasSubstr("Sweep: --port 8000\n"));
  EXPECT_THAT(text, HasSubstr("levels 2 of 5.00 s\n"));
  auto bars = [](const std::string& line) {
    size_t count = 0;
    for (size_t at = line.find("█"); at != std::string::npos; at = line.find("█", at + 1)) ++count;
    return count;
  };
  std::string one = line_with(text, "  100  "), eight = line_with(text, "  400  ");
  EXPECT_EQ(bars(one), 6u) << text;
  EXPECT_EQ(bars(eight), 24u);
  EXPECT_THAT(eight, HasSubstr("50.0 %!")) << "the generator was at its limit";
  EXPECT_THAT(one, Not(HasSubstr("!")));
  EXPECT_THAT(one, HasSubstr("–")) << "no curve, no value of it";
}

TEST(SweepText, SaysWhyThereIsNoCurveAndWhatItMeans) {
  std::string text = sweep_text(kTitle, two_levels());
  EXPECT_THAT(text, HasSubstr("no curve: three levels are needed"));
  EXPECT_THAT(text, HasSubstr("\nMore clients do not help.\n"));
  EXPECT_THAT(line_with(text, "blocked: lock"), HasSubstr("shrinks"));
  EXPECT_THAT(text, HasSubstr("1.00 ms")) << "CPU time per request";
}

TEST(SweepText, ACurveShowsItsRanges) {
  analysis::Scaling scaling = two_levels();
  scaling.fit = analysis::UslFit{};
  scaling.fit->lambda = 100;
  scaling.fit->sigma = 0.125;
  scaling.fit->lambda_range = {90, 110};
  std::string text = sweep_text(kTitle, scaling);
  EXPECT_THAT(text, Not(HasSubstr("no curve")));
  EXPECT_THAT(text, HasSubstr("(90–110)"));
  EXPECT_THAT(text, HasSubstr("0.1250"));
}

TEST(SweepText, WithoutLevelsThereIsOnlyTheTitle) {
  analysis::Scaling none;
  none.sentences = {"Nothing was measured."};
  EXPECT_EQ(sweep_text(kTitle, none),
            "Sweep: --port 8000\nload   http://127.0.0.1:8000/\nlevels 0 of 5.00 s\n\n"
            "Nothing was measured.\n");
}

TEST(SweepJson, HasEveryLevelAndNoInfinity) {
  analysis::Scaling scaling = two_levels();
  scaling.fit = analysis::UslFit{};
  scaling.fit->peak_concurrency = std::numeric_limits<double>::infinity();
  auto json = nlohmann::json::parse(sweep_json(kTitle, scaling));
  EXPECT_EQ(json.at("schema"), "assay-sweep-1");
  ASSERT_EQ(json.at("levels").size(), 2u);
  EXPECT_EQ(json.at("levels")[1].at("clients"), 8);
  EXPECT_EQ(json.at("levels")[1].at("generator_saturated"), true);
  EXPECT_EQ(json.at("best_level_clients"), 8);
  EXPECT_TRUE(json.at("fit").at("best_clients").is_null()) << "more clients always help";
  EXPECT_EQ(json.at("thread_time")[0].at("trend"), "grows");
  scaling.fit.reset();
  json = nlohmann::json::parse(sweep_json(kTitle, scaling));
  EXPECT_TRUE(json.at("fit").is_null());
  EXPECT_TRUE(json.at("levels")[0].at("fit_per_s").is_null());
  EXPECT_EQ(json.at("no_fit"), "three levels are needed");
}

}  // namespace
}  // namespace assay::cli
