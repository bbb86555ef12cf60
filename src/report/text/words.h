// Phrases that text and Markdown share: the same figures in the same words.
#pragma once

#include <string>
#include <vector>

#include "analysis/report.h"

namespace assay::report {

std::string since(int64_t utc_ns);     // " from 2026-11-15 05:21:12 UTC"; empty when not known
std::string utc_time(int64_t utc_ns);  // 2026-11-15 05:21:12 UTC
std::string grouped(uint64_t count);   // 1,234,567
std::string interval_text(const analysis::Estimate& e);  // 10.6–14.2 %
std::string share_text(const analysis::Diagnosis& f);    // 12.4 % of CPU time (10.6–14.2 %)
std::string percent_of(int64_t part, int64_t whole);     // 12.3, without the sign; "–" of nothing
std::string host_text(const analysis::Report& report);   // empty when the run does not say
// What the samples of a report stand for: time, or what an imported profile counts.
std::string amount_text(const analysis::Report& report, int64_t amount);
std::string window_text(const analysis::Report& report);  // its length, where it has one
std::string capture_text(const analysis::Report& report);
std::string where_text(const std::string& file, uint32_t line, const std::string& module);
std::string process_text(const model::Process& process);
// "wrk, pid 4711", "cc1plus, 12 processes, build.service"; not escaped.
std::string other_user_text(const model::OtherUser& user);

// A line of the table of resources; "" where there is nothing to say.
struct ResourceWords {
  std::string busy, demand, servers, waiting, name;
};
ResourceWords resource_words(const analysis::Resource& resource);
// "1,234 requests/s, about 16 open at once".
std::string resources_remark(const analysis::Demands& demands);

// One sentence per figure of the quality section, most important first.
std::vector<std::string> quality_phrases(const analysis::Quality& quality);
// The run's notes and the limits its figures show.
std::vector<model::QualityNote> all_limits(const analysis::Quality& quality);

// "lock 45.1", "poll 30.0": shares of wall time, largest first, none below 0.05 %.
std::vector<std::string> blocked_phrases(const analysis::TimeSplit& time);
std::string kind_text(const analysis::WaitSummary& wait);  // lock, or "idle (poll)"
// The URL or command that drove the server, as one line: scripts break them.
std::string load_name(const analysis::Report& report);
// "2 threads 38 %", …: how many of the serving pools run or could run; empty when not known.
std::vector<std::string> at_once_phrases(const analysis::Report& report);
// "76 µs CPU", …; empty when no load was measured.
std::vector<std::string> per_request_phrases(const analysis::Report& report);
std::string confidence_text(double confidence);             // high, medium, low
std::string pools_text(const analysis::WaitSummary& wait);  // worker-* 83 %, io-* 17 %

}  // namespace assay::report
