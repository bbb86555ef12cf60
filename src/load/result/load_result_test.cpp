#include <gtest/gtest.h>

#include "load/result/result_text.h"

namespace assay::load {
namespace {

LoadResult result_of(double cpu_share, double wait_share) {
  LoadResult result;
  result.workload.url = *parse_url("http://127.0.0.1:8000/");
  result.begin = 0;
  result.end = 10 * kNsPerSecond;
  result.connections = 8;
  result.streams = 1;
  for (int i = 1; i <= 1000; ++i) result.total.count({}, i * kNsPerUs);
  result.total.busiest_cpu_ns = static_cast<int64_t>(cpu_share * 10e9);
  result.total.busiest_wait_ns = static_cast<int64_t>(wait_share * 10e9);
  return result;
}

TEST(LoadResult, NoticesWhenTheGeneratorIsTheLimit) {
  EXPECT_EQ(result_of(0.5, 0.05).saturated(), "");
  EXPECT_NE(result_of(0.95, 0).saturated(), "");
  EXPECT_NE(result_of(0.5, 0.45).saturated(), "");
  EXPECT_EQ(result_of(0.1, 0.3).saturated(), "");
}

TEST(LoadResult, NoticesThatItSentLate) {
  LoadResult result = result_of(0.1, 0);
  for (int i = 0; i < 100; ++i) result.total.lag.record(50 * kNsPerMs);
  EXPECT_EQ(result.saturated(), "");  // a closed loop has no due times
  result.rate = 100;
  EXPECT_NE(result.saturated(), "");
  LoadResult prompt = result_of(0.1, 0);
  prompt.rate = 100;
  for (int i = 0; i < 100; ++i) prompt.total.lag.record(50 * kNsPerUs);
  EXPECT_EQ(prompt.saturated(), "");
}

TEST(LoadResult, TextSaysWhatCounts) {
  LoadResult result = result_of(0.95, 0);
  result.total.count({OutcomeKind::status_5xx, 503}, 0);
  result.total.count({OutcomeKind::connect, 111}, 0);
  result.unanswered = 3;
  result.unanswered_oldest_ns = 5 * kNsPerSecond;
  result.unsent = 7;
  std::string text = result_text(result);
  for (const char* part :
       {"100 requests/s", "p50 501 µs", "p99 989 µs", "max 1.00 ms", "HTTP 503",
        "Connection refused", "3 unanswered", "7 requests were due", "warning"}) {
    EXPECT_NE(text.find(part), text.npos) << part << " in\n" << text;
  }
}

TEST(LoadResult, TextOfNothing) {
  LoadResult result;
  result.workload.url = *parse_url("http://127.0.0.1:8000/");
  EXPECT_NE(result_text(result).find("0 requests/s"), std::string::npos);
  EXPECT_NE(result_json(result).find("\"throughput_per_s\": 0"), std::string::npos);
}

}  // namespace
}  // namespace assay::load
