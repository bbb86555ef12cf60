#include "formats/perf/read_perf_script.h"

#include "formats/export_fixture.h"

namespace assay::formats {
namespace {

class PerfScript : public testing::Test {
 protected:
  std::unique_ptr<run::Reader> read(const std::string& text, const ReadOptions& options = {}) {
    Input input = Input::of_bytes("script", text);
    return imported(scratch_, [&](RunBuilder& b) { return read_perf_script(input, options, b); });
  }
  run::ScratchDirectory scratch_;
};

std::string sample(const char* event, int64_t period = 0) {
  return fmt::format("srv 10/11 [001] 5.000100: {} {}\n\t55 f (/opt/srv)\n\n",
                     period > 0 ? std::to_string(period) : "", event);
}

TEST_F(PerfScript, TheEventThatTellsTimeBestMakesTheRun) {
  const std::string kSwitch =
      sample("sched:sched_switch: prev_comm=srv prev_pid=1318 ==> next_comm=a next_pid=1");
  const std::string kFaults = sample("page-faults:u:", 1), kCycles = sample("cycles:ppp:", 7),
                    kCore = sample("cpu_core/cycles/:", 7), kClock = sample("cpu-clock:", 250);
  auto event = [&](const std::string& text) {
    auto run = read(text);
    EXPECT_EQ(sums_of(*run).samples, 1) << text;
    return run->contents().info.oncpu_event;
  };
  EXPECT_EQ(event(kSwitch + kFaults + kCycles + kClock), "cpu-clock");
  EXPECT_EQ(event(kSwitch + kFaults + kCycles), "cycles:ppp");
  EXPECT_EQ(event(kFaults + kCore), "cpu_core/cycles/");
  EXPECT_EQ(event(kSwitch + kFaults), "page-faults:u");
  EXPECT_EQ(event(kSwitch), "sched:sched_switch");
  EXPECT_EQ(event(sample("") + kClock), "cpu-clock") << "a line without an event is none of it";
  EXPECT_EQ(sums_of(*read(kSwitch + kClock + kClock)), (Sums{2, 500, 0, 0, 0}));
}

TEST_F(PerfScript, RecordsThatPerfShowsBesideSamplesAreNone) {
  auto run = read(
      "swapper     0     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1) @ 0]: x k\n"
      "perf-exec     0     0.000000: PERF_RECORD_COMM: perf-exec:1258/1258\n"
      "srv  10 5.000000: PERF_RECORD_SWITCH IN         \n"
      "srv  10 5.000001: PERF_RECORD_FORK(10:11):(10:10)\n" +
      sample("cpu-clock:ppp:", 250) + "srv  10 5.100000: PERF_RECORD_SWITCH OUT preempt\n");
  EXPECT_EQ(sums_of(*run), (Sums{1, 250, 0, 0, 0}));
  EXPECT_EQ(run->contents().threads.size(), 1u);
  for (const auto& note : run->contents().notes) EXPECT_NE(note.topic, "events");
}

}  // namespace
}  // namespace assay::formats
