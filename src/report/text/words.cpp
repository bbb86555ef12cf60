#include "report/text/words.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "base/units.h"

namespace assay::report {
namespace {

std::string host_fact(const analysis::Report& report, std::string_view key) {
  for (const model::Fact& fact : report.facts) {
    if (fact.scope == "host" && fact.key == key) return fact.value;
  }
  return "";
}

std::string stacks_phrase(const analysis::Quality& q) {
  std::string text = "complete stacks: ";
  text += q.on_cpu.time_ns ? format_percent(q.on_cpu.complete) + " on-CPU" : "none on-CPU";
  text += q.off_cpu.time_ns ? ", " + format_percent(q.off_cpu.complete) + " off-CPU" : "";
  return text;
}

}  // namespace

std::string utc_time(int64_t utc_ns) {
  time_t seconds = utc_ns / kNsPerSecond;
  tm parts{};
  if (!gmtime_r(&seconds, &parts)) return "at an unknown time";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", int64_t{parts.tm_year} + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string since(int64_t utc_ns) {
  return utc_ns == 0 ? "" : " from " + utc_time(utc_ns);
}

std::string grouped(uint64_t count) {
  std::string digits = fmt::format("{}", count), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string interval_text(const analysis::Estimate& e) {
  return fmt::format("{:.1f}–{:.1f} %", e.low * 100, e.high * 100);
}

std::string share_text(const analysis::Diagnosis& f) {
  return fmt::format("{} of {} ({})", format_percent(f.share.share), analysis::share_of_id(f.of),
                     interval_text(f.share));
}

std::string percent_of(int64_t part, int64_t whole) {
  if (whole <= 0) return "–";
  return fmt::format("{:.1f}", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string host_text(const analysis::Report& report) {
  std::string kernel = host_fact(report, "kernel");
  if (!kernel.empty() && !kernel.starts_with("Linux")) kernel = fmt::format("Linux {}", kernel);
  std::string cpu = host_fact(report, "cpu_model");
  std::string cpus = report.cpus > 0 ? fmt::format("{} CPUs", report.cpus) : "";
  if (!cpu.empty()) cpus = cpus.empty() ? cpu : fmt::format("{} ({})", cpus, cpu);
  std::string text = host_fact(report, "hostname");
  for (const std::string& part : {kernel, cpus}) {
    if (!part.empty()) text = text.empty() ? part : fmt::format("{}, {}", text, part);
  }
  return text;
}

std::string amount_text(const analysis::Report& report, int64_t amount) {
  const std::string& unit = report.counted_unit;
  if (unit.empty()) return format_duration(amount);
  auto count = static_cast<uint64_t>(std::max<int64_t>(0, amount));
  return unit == "bytes" ? format_bytes(count) : fmt::format("{} {}", grouped(count), unit);
}

std::string window_text(const analysis::Report& report) {
  if (is_of_counts(report.run_kind)) return "unknown (imported profile)";
  bool has_none = report.window_ns == 0 && !report.heap.timed;
  if (!has_none) return format_duration(report.window_ns);
  return report.info.utc_begin_ns > 0 ? "unknown (imported profile)" : "not known";
}

std::string other_user_text(const model::OtherUser& user) {
  std::string processes = user.processes > 1 ? fmt::format("{} processes", grouped(user.processes))
                                             : fmt::format("pid {}", user.pid);
  return fmt::format("{}, {}{}{}", user.name, processes, user.service.empty() ? "" : ", ",
                     user.service);
}

ResourceWords resource_words(const analysis::Resource& r) {
  ResourceWords words;
  bool is_delay = r.servers <= 0;
  if (!is_delay) words.busy = format_percent(r.busy_share);
  words.demand = format_duration(static_cast<int64_t>(r.demand_s * 1e9));
  if (!is_delay) words.servers = fmt::format("{:.3g}", r.servers);
  if (r.waiting >= 0.005) words.waiting = fmt::format("{:.2f}", r.waiting);
  words.name = r.kind == analysis::ResourceKind::threads ? "threads " + r.name : r.name;
  if (r.limits) words.name += " (the limit)";
  return words;
}

std::string resources_remark(const analysis::Demands& d) {
  double per_s = d.units_per_s;
  std::string rate = per_s < 10 ? fmt::format("{:.2g}", per_s)
                                : format_count(static_cast<uint64_t>(std::llround(per_s)));
  std::string text = fmt::format("{} {}s/s", rate, analysis::work_unit_id(d.unit));
  if (d.in_flight_known) text += fmt::format("; {:.3g} in the server at once", d.in_flight);
  return text;
}

std::string capture_text(const analysis::Report& report) {
  std::string text = fmt::format("{} process{}", report.processes.size(),
                                 report.processes.size() == 1 ? "" : "es");
  // A heap profile of another tool has one that stands for all.
  bool knows_threads = report.heap.timed || report.threads.size() > report.processes.size();
  if (knows_threads)
    text += fmt::format(", {} thread{}", grouped(report.threads.size()),
                        report.threads.size() == 1 ? "" : "s");
  if (!report.info.backend.empty()) text += "; " + report.info.backend;
  if (!report.info.oncpu_event.empty()) {
    text += (report.info.backend.empty() ? "; " : ", ") + report.info.oncpu_event;
    if (report.quality.hz_asked > 0) text += fmt::format(" at {:.0f} Hz", report.quality.hz_asked);
  }
  return text;
}

std::string where_text(const std::string& file, uint32_t line, const std::string& module) {
  if (file.empty()) return module;
  std::string name = file.substr(file.rfind('/') + 1);
  return line > 0 ? fmt::format("{}:{}", name, line) : name;
}

std::string process_text(const model::Process& process) {
  std::string_view name = model::process_name(process);
  std::string text = fmt::format("{} {}", process.pid, name);
  // The main process needs no saying; its name needs the room.
  if (!process.role.empty() && process.role != "main" && process.role != name)
    text += fmt::format(" ({})", process.role);
  return text;
}

std::vector<std::string> quality_phrases(const analysis::Quality& q) {
  std::vector<std::string> phrases;
  phrases.push_back(q.samples >= 100
                        ? fmt::format("{} samples at {:.1f} Hz", grouped(q.samples), q.hz)
                        : fmt::format("{} samples", grouped(q.samples)));
  phrases.push_back(format_count(q.waits) + " waits");
  phrases.push_back("lost " + format_percent(q.lost_share));
  phrases.push_back(stacks_phrase(q));
  if (q.on_cpu.time_ns) phrases.push_back("unresolved " + format_percent(q.on_cpu.unresolved));
  const analysis::Accounting& a = q.accounting;
  if (a.threads_checked > 0) {
    phrases.push_back(
        fmt::format("agrees with the kernel's clock within {}", format_percent(a.error_share)));
    if (a.queued_ns > 0 || a.kernel_queued_ns > 0)
      phrases.push_back(fmt::format("run queue {} ({} by the kernel's count)",
                                    format_duration(a.queued_ns),
                                    format_duration(a.kernel_queued_ns)));
  }
  if (q.own_cost.cpu_ns) {
    phrases.push_back("Assay itself: " + format_duration(*q.own_cost.cpu_ns) + " CPU");
    if (q.own_cost.peak_rss_bytes) {
      phrases.back() += ", " + format_bytes(static_cast<uint64_t>(*q.own_cost.peak_rss_bytes));
    }
  }
  return phrases;
}

std::vector<model::QualityNote> all_limits(const analysis::Quality& quality) {
  std::vector<model::QualityNote> limits = quality.limits;
  limits.insert(limits.end(), quality.notes.begin(), quality.notes.end());
  return limits;
}

std::vector<std::string> blocked_phrases(const analysis::TimeSplit& time) {
  std::vector<std::pair<int64_t, analysis::BlockKind>> kinds;
  for (int k = 0; k < analysis::kBlockKindCount; ++k) {
    auto kind = static_cast<analysis::BlockKind>(k);
    if (time.of(kind) > 0 && time.of(kind) * 2000 >= time.wall_ns) {
      kinds.emplace_back(time.of(kind), kind);
    }
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> phrases;
  for (auto [ns, kind] : kinds) {
    phrases.push_back(
        fmt::format("{} {}", analysis::block_kind_name(kind), percent_of(ns, time.wall_ns)));
  }
  return phrases;
}

std::string kind_text(const analysis::WaitSummary& wait) {
  std::string kind(analysis::block_kind_name(wait.kind));
  return wait.idle ? fmt::format("idle ({})", kind) : kind;
}

std::string load_name(const analysis::Report& report) {
  std::string name;
  bool between = false;
  for (char c : report.workload.what) {
    bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space) {
      if (between && !name.empty()) name += ' ';
      name += c;
    }
    between = space;
  }
  return name;
}

std::vector<std::string> per_request_phrases(const analysis::Report& report) {
  const analysis::Vitals& v = report.vitals;
  std::vector<std::string> phrases;
  auto duration = [](double us) { return format_duration(static_cast<int64_t>(us * 1000)); };
  if (v.cpu_us_per_request) {
    phrases.push_back(fmt::format("{} CPU, {} of it in the kernel", duration(*v.cpu_us_per_request),
                                  duration(v.kernel_us_per_request.value_or(0))));
  }
  if (v.blocked_us_per_request) {
    phrases.push_back(duration(*v.blocked_us_per_request) + " blocked");
  }
  if (v.switches_per_request) {
    phrases.push_back(fmt::format("{:.2g} switches", *v.switches_per_request));
  }
  return phrases;
}

std::vector<std::string> at_once_phrases(const analysis::Report& report) {
  constexpr size_t kNamed = 4;  // then "4 or more"
  const std::vector<double>& active = report.parallelism.active;
  std::vector<std::string> phrases;
  for (size_t count = 0; count < active.size() && count <= kNamed; ++count) {
    double share = count < kNamed ? active[count] : analysis::Parallelism::at_least(active, count);
    if (count == 0) {
      phrases.push_back(fmt::format("no thread runs or could run {}", format_percent(share)));
      continue;
    }
    phrases.push_back(fmt::format("{}{} {}", count, count < kNamed ? "" : " or more",
                                  format_percent(share)));
  }
  if (!phrases.empty() && report.vitals.concurrency) {
    phrases.push_back(fmt::format("{:.0f} requests in flight", *report.vitals.concurrency));
  }
  return phrases;
}

std::string confidence_text(double confidence) {
  return confidence >= 0.8 ? "high" : confidence >= 0.65 ? "medium" : "low";
}

std::string pools_text(const analysis::WaitSummary& wait) {
  constexpr size_t kNamed = 2;
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, wait.pools.size()); ++i) {
    double share = wait.total_ns > 0 ? static_cast<double>(wait.pools[i].time_ns) /
                                           static_cast<double>(wait.total_ns)
                                     : 0;
    text += fmt::format("{}{} {:.0f} %", i ? ", " : "", wait.pools[i].pool, share * 100);
  }
  if (wait.pools.size() > kNamed) text += fmt::format(", {} more", wait.pools.size() - kNamed);
  if (wait.pools.size() == 1) text = wait.pools[0].pool;
  return text;
}

}  // namespace assay::report
