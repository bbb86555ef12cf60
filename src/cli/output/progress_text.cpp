#include "cli/output/progress_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace assay::cli {
namespace {

using session::CaptureProgress;
using session::Phase;

int64_t elapsed_ns(const CaptureProgress& state) {
  return std::max<int64_t>(0, state.now - state.begin);
}

// "12 s left", or how long it has gone on where it has no end by time.
std::string time_text(const CaptureProgress& state) {
  int64_t elapsed = elapsed_ns(state);
  if (state.duration_ns <= 0)
    return fmt::format("{:.0f} s, Ctrl-C to end", static_cast<double>(elapsed) / 1e9);
  int64_t left = std::max<int64_t>(0, state.duration_ns - elapsed);
  return fmt::format("{:.0f} s left", static_cast<double>(left) / 1e9);
}

std::string bar(const CaptureProgress& state) {
  constexpr int kCells = 12;
  auto filled =
      static_cast<int>(std::min<int64_t>(kCells, elapsed_ns(state) * kCells / state.duration_ns));
  std::string cells;
  for (int i = 0; i < kCells; ++i) cells += i < filled ? "█" : "░";
  return cells + " ";
}

constexpr const char* kUndoing = "waiting: an earlier attach is being undone";

}  // namespace

std::string progress_text(const session::RecordProgress& state) {
  if (state.phase == Phase::preparing) return "preparing: reading the target's programs";
  if (state.phase == Phase::waiting_for_detach) return kUndoing;
  std::string time = (state.duration_ns > 0 ? bar(state) : "") + time_text(state);
  if (state.phase == Phase::warming_up)
    time = fmt::format("{} left", format_duration(std::max<int64_t>(0, state.begin - state.now)));
  return fmt::format("{} {} · {}p {}t · {} samples {} waits {} lost", phase_text(state.phase), time,
                     state.processes, state.threads, format_count(state.samples),
                     format_count(state.waits), format_count(state.lost));
}

std::string progress_text(const session::HeapProgress& state) {
  if (state.phase == Phase::preparing) return "preparing: loading the sampler into the target";
  if (state.phase == Phase::waiting_for_detach) return kUndoing;
  return fmt::format("{} {} · {} sampled allocations · {} live", phase_text(state.phase),
                     time_text(state), format_count(state.allocations),
                     format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, state.live_bytes))));
}

}  // namespace assay::cli
