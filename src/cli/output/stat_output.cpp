#include "cli/output/stat_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/printable.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNameWidth = 40;

// When it was, then what the report makes of the counts.
Json timed(double from_s, double to_s, bool whole, const report::CountersShown& shown) {
  Json out{{"whole", whole}, {"from_s", from_s}, {"to_s", to_s}};
  out.update(Json::parse(report::render_counters_json(shown)));
  return out;
}

Json thread_json(const session::ThreadCounts& thread, double seconds) {
  Json out{{"pid", thread.pid},
           {"tid", thread.tid},
           {"name", report::fitted(thread.name, kNameWidth)},
           {"with_what_it_started", true}};
  out.update(Json::parse(report::render_counters_json({seconds, thread.counts})));
  return out;
}

}  // namespace

std::string interval_label(double to_s, int64_t interval_ns) {
  // A tenth of the interval is enough, and tenths of a second are read easily.
  int decimals = 1;
  for (int64_t step = kNsPerSecond / 10; step > interval_ns / 10 && decimals < 9; step /= 10)
    ++decimals;
  return fmt::format("{:.{}f} s", to_s, decimals);
}

std::string interval_json(double from_s, double to_s, const model::Counts& counts) {
  return timed(from_s, to_s, false, {to_s - from_s, counts}).dump();
}

std::string whole_json(const session::StatOutcome& outcome) {
  report::CountedBesides besides = besides_of(outcome);
  Json out = timed(0, outcome.seconds, true,
                   {outcome.seconds, outcome.counts, outcome.requests, &besides});
  out["ended"] = end_name(outcome.end);
  out["processes"] = outcome.processes;
  out["threads"] = outcome.threads;
  out["user_mode_only"] = outcome.user_only;
  out["voluntary_switches"] = outcome.voluntary_switches;
  out["involuntary_switches"] = outcome.involuntary_switches;
  if (outcome.launched_exit) out["exit_code"] = outcome.launched_exit->exit_code();
  for (const session::ThreadCounts& thread : outcome.per_thread)
    out["per_thread"].push_back(thread_json(thread, outcome.seconds));
  return out.dump();
}

report::CountedBesides besides_of(const session::StatOutcome& outcome) {
  report::CountedBesides besides{outcome.top_down, outcome.syscalls, {}, outcome.syscall_source};
  for (const session::SyscallRate& call : outcome.by_syscall)
    besides.by_syscall.push_back({call.name, call.calls});
  return besides;
}

std::string_view end_name(session::EndReason end) {
  switch (end) {
    case session::EndReason::time:
      return "time";
    case session::EndReason::target_exited:
      return "target ended";
    case session::EndReason::interrupted:
      return "interrupted";
    case session::EndReason::write_failed:  // it writes no file
      break;
  }
  return "";
}

std::string thread_label(const session::ThreadCounts& thread) {
  return fmt::format("{} ({}) and what it started", report::fitted(thread.name, kNameWidth),
                     thread.tid);
}

}  // namespace assay::cli
