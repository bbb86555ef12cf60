#include "load/result/tick_line.h"

#include <gtest/gtest.h>

namespace assay::load {
namespace {

TEST(TickLine, ThereAndBack) {
  Tick tick;
  tick.end = 123'456'789'000;
  for (int i = 1; i <= 100; ++i) tick.tally.count({}, i * kNsPerMs);
  tick.tally.count({OutcomeKind::status_5xx, 503}, 0);
  tick.tally.busiest_cpu_ns = 77;
  tick.tally.lag.record(5000);
  std::string line = format_line(tick);
  ASSERT_EQ(line.back(), '\n');
  auto parsed = parse_line(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(parsed);
  const auto& back = std::get<TickLine>(*parsed);
  EXPECT_EQ(back.end, tick.end);
  EXPECT_EQ(back.ok, 100U);
  EXPECT_EQ(back.failed, 1U);
  EXPECT_EQ(back.cpu_ns, 77);
  EXPECT_EQ(back.latency.max_ns(), 100 * kNsPerMs);
  EXPECT_EQ(back.latency.quantile_ns(0.5), tick.tally.latency.quantile_ns(0.5));
  EXPECT_EQ(back.lag.count(), 1U);

  auto plan = parse_line("plan open 8 10 2500");
  ASSERT_TRUE(plan);
  EXPECT_TRUE(std::get<PlanLine>(*plan).open_loop);
  EXPECT_EQ(std::get<PlanLine>(*plan).streams, 10U);
  EXPECT_EQ(std::get<PlanLine>(*plan).rate, 2500);
  EXPECT_EQ(format_line(ErrorLine{"a\nb"}), "error a b\n");
}

TEST(TickLine, WhatIsNoLine) {
  for (const char* bad :
       {"", "x", "tick", "tick 1 2 3", "tick 1 2 3 4 5 x", "tick 1 2 3 4 5 6 7", "plan open 1",
        "tick 1 2 3 4 5 6 9999999:1", "tick 1 2 3 4 5 6 1:-1", "plan open x 1 0"}) {
    EXPECT_FALSE(parse_line(bad)) << bad;
  }
}

}  // namespace
}  // namespace assay::load
