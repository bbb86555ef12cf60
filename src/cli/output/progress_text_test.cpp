#include "cli/output/progress_text.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace assay::cli {
namespace {

using session::Phase;

session::RecordProgress recording(int64_t elapsed_s, int64_t duration_s) {
  session::RecordProgress state;
  state.begin = 100 * kNsPerSecond;
  state.now = state.begin + elapsed_s * kNsPerSecond;
  state.duration_ns = duration_s * kNsPerSecond;
  state.phase = Phase::recording;
  state.samples = 42;
  state.processes = 2;
  state.threads = 9;
  return state;
}

TEST(ProgressText, ABarFillsUpAsTheTimePasses) {
  EXPECT_EQ(progress_text(recording(15, 30)),
            "recording ██████░░░░░░ 15 s left · 2p 9t · 42 samples 0 waits 0 lost");
  EXPECT_EQ(progress_text(recording(0, 30)).find("█"), std::string::npos);
  EXPECT_EQ(progress_text(recording(99, 30)),
            "recording ████████████ 0 s left · 2p 9t · 42 samples 0 waits 0 lost");
}

TEST(ProgressText, WithoutAnEndItSaysHowToEndIt) {
  EXPECT_EQ(progress_text(recording(7, 0)),
            "recording 7 s, Ctrl-C to end · 2p 9t · 42 samples 0 waits 0 lost");
}

TEST(ProgressText, WarmingUpCountsDownToTheBegin) {
  session::RecordProgress state = recording(-2, 30);
  state.phase = Phase::warming_up;
  EXPECT_EQ(progress_text(state).rfind("warming up 2.00 s left", 0), 0u) << progress_text(state);
  state = recording(5, 30);
  state.phase = Phase::warming_up;
  EXPECT_EQ(progress_text(state).rfind("warming up 0", 0), 0u) << "never less than nothing";
}

TEST(ProgressText, PhasesBeforeTheWindowSayWhatIsDone) {
  session::RecordProgress record = recording(0, 30);
  record.phase = Phase::preparing;
  EXPECT_EQ(progress_text(record), "preparing: reading the target's programs");
  record.phase = Phase::waiting_for_detach;
  EXPECT_EQ(progress_text(record), "waiting: an earlier attach is being undone");
  session::HeapProgress heap;
  EXPECT_EQ(progress_text(heap), "preparing: loading the sampler into the target");
  heap.phase = Phase::waiting_for_detach;
  EXPECT_EQ(progress_text(heap), "waiting: an earlier attach is being undone");
}

TEST(ProgressText, AHeapIsToldInAllocationsAndBytes) {
  session::HeapProgress state;
  state.begin = kNsPerSecond;
  state.now = 4 * kNsPerSecond;
  state.phase = Phase::sampling;
  state.allocations = 17;
  state.live_bytes = -5;  // an estimate may fall below nothing
  EXPECT_EQ(progress_text(state),
            "sampling 3 s, Ctrl-C to end · 17 sampled allocations · " + format_bytes(0) + " live");
}

}  // namespace
}  // namespace assay::cli
