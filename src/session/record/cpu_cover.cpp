#include "session/record/cpu_cover.h"

#include <algorithm>

namespace assay::session {

void CpuCover::look(TimeNs now) {
  for (const os::CpuChange& change : watch_->changes()) {
    if (change.online) {
      came_back(change.cpu, now);
    } else if (auto without = uncovered_since_.find(change.cpu); without != uncovered_since_.end()) {
      lose(change.cpu, without->second, now);  // it is gone again: nothing more is missed there
      uncovered_since_.erase(without);
    }
  }
  last_look_ = now;
}

// When exactly it came is not known: at the earliest right after the last look.
void CpuCover::came_back(int cpu, TimeNs now) {
  ++returns_[cpu];
  auto opened = parts_.reopen(cpu);
  if (opened) {
    lose(cpu, last_look_, now);
    uncovered_since_.erase(cpu);
    return;
  }
  uncovered_since_.try_emplace(cpu, last_look_);
  parts_.note({"CPUs",
               fmt::format("CPU {} was brought online during the capture and cannot be sampled: {}",
                           cpu, opened.error().what),
               "record again while no CPU is taken off or brought back"});
}

void CpuCover::lose(int cpu, TimeNs begin, TimeNs end) {
  int64_t period = std::max<int64_t>(1, sample_period_ns_);
  int64_t samples = (std::max<int64_t>(0, end - begin) + period - 1) / period;
  if (samples > 0) parts_.lost(cpu, end, static_cast<uint64_t>(samples));
}

void CpuCover::finish(TimeNs window_end) {
  look(window_end);
  for (auto [cpu, since] : uncovered_since_) lose(cpu, since, window_end);
  for (auto [cpu, times] : returns_) {
    if (uncovered_since_.contains(cpu)) continue;
    parts_.note({"CPUs",
                 fmt::format("CPU {} was taken off and brought back {}: the moments until it was "
                             "sampled again are counted as lost",
                             cpu, times == 1 ? "once" : fmt::format("{} times", times)),
                 ""});
  }
  uncovered_since_.clear();
  returns_.clear();
}

}  // namespace assay::session
