// limits_of(): the sentences of quality.h. Thresholds are those below which a report's shares are
// still within a few percent of the truth; a verdict asks for more and states its own.
#include <cmath>

#include <fmt/format.h>

#include "analysis/profile/quality.h"
#include "analysis/wording.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kLostShare = 0.01;
constexpr double kIncompleteShare = 0.05;
constexpr double kUnresolvedShare = 0.10;
constexpr double kAccountingShare = 0.02;  // promise 1
constexpr uint64_t kFewSamples = 100;

using Notes = std::vector<model::QualityNote>;

void add_ending(const Quality& q, Notes& notes) {
  if (!q.finished) {
    notes.push_back({"ending", "the capture was killed; what it had written by then is shown", ""});
  } else if (!q.end_reason.empty() && q.end_reason != "time" && !q.ran_to_its_end) {
    notes.push_back({"ending", "the capture ended early: " + q.end_reason, ""});
  }
}

void add_losses(const Quality& q, Notes& notes) {
  if (q.lost_share > kLostShare) {
    notes.push_back({"loss",
                     fmt::format("{} of the records were lost ({}); times and shares are off by "
                                 "about as much",
                                 format_percent(q.lost_share), format_count(q.lost_records)),
                     "record with a lower rate, for example --freq 49"});
  }
  auto lost = [&](model::LossKind kind) { return q.lost[static_cast<size_t>(kind)]; };
  uint64_t copies = lost(model::LossKind::dropped_stacks);
  if (static_cast<double>(copies) > kLostShare * static_cast<double>(q.samples + q.waits)) {
    notes.push_back({"loss",
                     fmt::format("{} stack copies were dropped to keep up with the target: those "
                                 "stacks go by frame pointers alone, or have none",
                                 format_count(copies)),
                     ""});
  }
  if (uint64_t n = lost(model::LossKind::throttled); n > 0) {
    notes.push_back({"loss",
                     fmt::format("the kernel throttled the sampling {} times", format_count(n)),
                     "record with a lower rate, for example --freq 49"});
  }
  if (uint64_t n = lost(model::LossKind::untracked_threads); n > 0) {
    notes.push_back({"threads", fmt::format("{} threads could not be followed", format_count(n)),
                     "ulimit -n 65536"});
  }
  if (q.accounting.threads_unseen > 0) {
    notes.push_back({"threads",
                     fmt::format("{} threads left neither a sample nor a wait; their time is "
                                 "counted as blocked, kind unknown",
                                 q.accounting.threads_unseen),
                     ""});
  }
}

void add_sums(const Quality& q, Notes& notes) {
  const Accounting& a = q.accounting;
  if (a.threads_checked > 0 && a.error_share > kAccountingShare) {
    notes.push_back(
        {"accounting",
         fmt::format("running time differs from the kernel's own account by {} of the "
                     "wall time (thread {}: {})",
                     format_percent(a.error_share), a.worst_tid, format_percent(a.worst_share)),
         ""});
  }
  if (a.overlapping_waits > 0) {
    notes.push_back(
        {"accounting",
         fmt::format("{} waits overlapped others of their thread by {} in all; the "
                     "overlap was cut",
                     format_count(a.overlapping_waits), format_duration(a.overlapping_ns)),
         ""});
  }
  if (q.samples < kFewSamples) return;
  // Three standard deviations of a count, and what promise 1 allows the running time itself.
  double error = 3 / std::sqrt(static_cast<double>(q.samples)) + kAccountingShare;
  if (std::abs(q.sampled_share - 1) > error) {
    notes.push_back({"sampling",
                     fmt::format("samples stand for {} of the running time, outside the sampling "
                                 "error of ±{}",
                                 format_percent(q.sampled_share), format_percent(error)),
                     "assay doctor"});
  }
}

void add_stacks(const Quality& q, const StackShares& s, const char* which, Notes& notes) {
  if (s.time_ns == 0) return;
  if (s.truncated > kIncompleteShare) {
    notes.push_back({"stacks",
                     fmt::format("{} of {} time has a truncated stack: callers are missing",
                                 format_percent(s.truncated), which),
                     ""});
  }
  if (s.by_frame_pointers > kIncompleteShare) {
    notes.push_back({"stacks",
                     fmt::format("{} of {} time has a stack by frame pointers alone: callers may "
                                 "be missing",
                                 format_percent(s.by_frame_pointers), which),
                     ""});
  }
  if (s.none > kIncompleteShare) {
    notes.push_back(
        {"stacks", fmt::format("{} of {} time has no stack", format_percent(s.none), which), ""});
  }
  if (s.unresolved > kUnresolvedShare) {
    std::string where;
    if (&s == &q.on_cpu && !q.unresolved_modules.empty()) {
      const UnresolvedModule& worst = q.unresolved_modules[0];
      where = fmt::format(", {} in {}", largest_part(worst.share / s.unresolved), worst.module);
    }
    notes.push_back({"symbols",
                     fmt::format("{} of {} time is in functions without a name{}",
                                 format_percent(s.unresolved), which, where),
                     "assay doctor"});
  }
}

}  // namespace

std::vector<model::QualityNote> limits_of(const Quality& quality) {
  Notes notes;
  add_ending(quality, notes);
  add_losses(quality, notes);
  add_sums(quality, notes);
  if (quality.samples < kFewSamples) {
    notes.push_back({"sampling",
                     fmt::format("only {} on-CPU samples: the intervals are wide", quality.samples),
                     "record for longer, or with a higher --freq"});
  }
  add_stacks(quality, quality.on_cpu, "on-CPU", notes);
  add_stacks(quality, quality.off_cpu, "blocked", notes);
  return notes;
}

}  // namespace assay::analysis
