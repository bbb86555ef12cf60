#include "formats/perf/read_perf_script.h"

#include "formats/export/export_fixture.h"

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

// A thread of which only waits are known lives as long as they are, so nothing is left to run in.
TEST_F(PerfScript, BetweenWaitsAloneNothingIsTakenForRunning) {
  auto run = read(
      "srv 10/11 5.000000: 1000 off-cpu:\n\t55 f (/opt/srv)\n\n"
      "srv 10/11 6.000000: 3000 off-cpu:\n\t55 f (/opt/srv)\n\n"
      "srv 10/11 6.000003: 500 runqueue:\n\t55 f (/opt/srv)\n\n");
  EXPECT_EQ(sums_of(*run), (Sums{0, 0, 2, 4000, 500})) << "none lies beyond the thread's life";
  const model::Thread& thread = run->contents().threads[0];
  EXPECT_EQ(thread.end_ns - thread.begin_ns, 4500);
  std::vector<std::pair<TimeNs, int64_t>> waits;
  (void)run->for_each_wait({}, [&](const model::Wait& w) {
    waits.emplace_back(w.start - thread.begin_ns, w.duration_ns);
  });
  EXPECT_EQ(waits, (std::vector<std::pair<TimeNs, int64_t>>{{0, 1000}, {1000, 3000}, {4000, 500}}));
  bool noted = false;
  for (const auto& note : run->contents().notes) noted = noted || note.topic == "times";
  EXPECT_TRUE(noted);
}

TEST_F(PerfScript, TextThatEndsWithinALineIsNoted) {
  auto noted = [&](const std::string& text) {
    bool cut = false;
    auto run = read(text);
    for (const auto& note : run->contents().notes) cut = cut || note.topic == "cut";
    return cut;
  };
  std::string whole = sample("cpu-clock:", 250);
  EXPECT_FALSE(noted(whole));
  EXPECT_TRUE(noted(whole.substr(0, whole.size() - 6)));
}

}  // namespace
}  // namespace assay::formats
