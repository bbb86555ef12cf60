#include "os/events/perf_event.h"

#include <gtest/gtest.h>

namespace assay::os {
namespace {

TEST(PerfEvent, OlderKernelsAreAskedForLessNewestFirst) {
  perf_event_attr attr{};
  attr.read_format = PERF_FORMAT_LOST | PERF_FORMAT_TOTAL_TIME_ENABLED;
  attr.build_id = 1;
  attr.inherit_thread = 1;
  ASSERT_TRUE(drop_newest_request(attr));
  EXPECT_EQ(attr.read_format, static_cast<uint64_t>(PERF_FORMAT_TOTAL_TIME_ENABLED));
  EXPECT_EQ(attr.build_id, 1u);
  ASSERT_TRUE(drop_newest_request(attr));
  EXPECT_EQ(attr.build_id, 0u);
  EXPECT_FALSE(drop_newest_request(attr));
  EXPECT_EQ(attr.inherit_thread, 1u) << "who is followed must not change";
}

}  // namespace
}  // namespace assay::os
