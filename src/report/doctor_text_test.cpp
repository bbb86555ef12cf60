#include "report/doctor_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

using model::CheckStatus;

const std::vector<model::Check> kChecks{
    {"perf events", CheckStatus::ok, "on every CPU", "not shown", "not shown"},
    {"PMU", CheckStatus::limited, "none", "timer samples", "get one"},
    {"target", CheckStatus::missing, "two:\n  pid 1", "", "assay --pid 1"}};

TEST(DoctorText, ShowsCostAndRemedyOfWhatIsNotOk) {
  EXPECT_EQ(doctor_text(kChecks, false),
            "ok       perf events  on every CPU\n"
            "limited  PMU          none\n"
            "                      cost: timer samples\n"
            "                      try:  get one\n"
            "missing  target       two:\n"
            "                        pid 1\n"
            "                      try:  assay --pid 1\n"
            "\n1 ok, 1 limited, 1 missing\n");
}

TEST(DoctorText, ColoursOnlyWhenAsked) {
  EXPECT_EQ(doctor_text(kChecks, false).find('\x1b'), std::string::npos);
  EXPECT_NE(doctor_text(kChecks, true).find("\x1b[33mlimited\x1b[0m  PMU"), std::string::npos);
}

TEST(DoctorJson, SaysWhetherAnythingIsMissing) {
  auto all = nlohmann::json::parse(doctor_json(kChecks));
  EXPECT_FALSE(all["ok"]);
  EXPECT_EQ(all["checks"].size(), 3u);
  EXPECT_EQ(all["checks"][1]["status"], "limited");
  EXPECT_EQ(all["checks"][1]["remedy"], "get one");
  auto good = nlohmann::json::parse(doctor_json({{"x", CheckStatus::limited, "\xff", "", ""}}));
  EXPECT_TRUE(good["ok"]);
}

}  // namespace
}  // namespace assay::report
