// The kernel's own count of lost records: the loss of a full ring is known even when no record
// follows.
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/perf/event_set.h"
#include "harness.h"

namespace assay::kernel_test {
namespace {

std::string kernel_release() {
  utsname name{};
  uname(&name);
  return name.release;
}

void sleep_often(int times) {
  for (int i = 0; i < times; ++i) usleep(1);
}

TEST(LostRecords, AreCountedThoughNoRecordFollows) {
  if (std::string why = why_skipped(); !why.empty()) GTEST_SKIP() << why;
  capture::EventOptions options;
  for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); ++cpu) options.cpus.push_back(cpu);
  options.wakeups = false;
  options.switch_tracepoint = false;
  options.ring_budget_bytes = 1;  // the smallest rings there are
  auto opened = capture::EventSet::open(os::real_perf_kernel(), options,
                                        [] { return std::vector<pid_t>{getpid()}; });
  ASSERT_TRUE(opened) << opened.error().text();
  capture::EventSet& events = **opened;
  EXPECT_EQ(events.lost_records(), 0u);
  ASSERT_TRUE(events.enable());
  sleep_often(2000);  // far more than 32 KiB of records, without a reader
  events.disable();
  uint64_t lost = events.lost_records();
  if (std::string release = kernel_release(); lost == 0 && release < "6.")
    GTEST_SKIP() << "skipped: kernel " << release << " keeps no count";
  EXPECT_GE(lost, 1000u);
}

}  // namespace
}  // namespace assay::kernel_test
