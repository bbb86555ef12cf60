#include "load/result/tick_line.h"

#include <charconv>
#include <iterator>

#include "os/text_fields.h"

namespace assay::load {
namespace {

std::optional<PlanLine> parse_plan(const std::vector<std::string_view>& words) {
  if (words.size() != 5) return std::nullopt;
  auto connections = os::parse_u64(words[2]), streams = os::parse_u64(words[3]);
  PlanLine plan;
  plan.open_loop = words[1] == "open";
  auto [end, status] =
      std::from_chars(words[4].data(), words[4].data() + words[4].size(), plan.rate);
  if (!connections || !streams || status != std::errc()) return std::nullopt;
  plan.connections = static_cast<uint32_t>(*connections);
  plan.streams = static_cast<uint32_t>(*streams);
  return plan;
}

bool add_bucket(std::string_view word, TickLine& tick) {
  bool lag = word.starts_with('L');
  if (lag) word.remove_prefix(1);
  size_t colon = word.find(':');
  if (colon == word.npos) return false;
  auto bucket = os::parse_u64(word.substr(0, colon));
  auto count = os::parse_u64(word.substr(colon + 1));
  if (!bucket || !count || *bucket >= Histogram::kBuckets) return false;
  (lag ? tick.lag : tick.latency).add_bucket(static_cast<uint32_t>(*bucket), *count);
  return true;
}

std::optional<TickLine> parse_tick(const std::vector<std::string_view>& words) {
  constexpr size_t kFixedWords = 7;
  if (words.size() < kFixedWords) return std::nullopt;
  auto end = os::parse_i64(words[1]);
  auto ok = os::parse_u64(words[2]), failed = os::parse_u64(words[3]);
  auto cpu = os::parse_i64(words[4]), wait = os::parse_i64(words[5]), max = os::parse_i64(words[6]);
  if (!end || !ok || !failed || !cpu || !wait || !max) return std::nullopt;
  TickLine tick;
  tick.end = *end;
  tick.ok = *ok;
  tick.failed = *failed;
  tick.cpu_ns = *cpu;
  tick.wait_ns = *wait;
  for (size_t i = kFixedWords; i < words.size(); ++i) {
    if (!add_bucket(words[i], tick)) return std::nullopt;
  }
  tick.latency.set_max(*max);
  return tick;
}

}  // namespace

std::string format_line(const PlanLine& plan) {
  return fmt::format("plan {} {} {} {}\n", plan.open_loop ? "open" : "closed", plan.connections,
                     plan.streams, plan.rate);
}

std::string format_line(const Tick& tick) {
  const Tally& tally = tick.tally;
  std::string line =
      fmt::format("tick {} {} {} {} {} {}", tick.end, tally.ok, tally.failed, tally.busiest_cpu_ns,
                  tally.busiest_wait_ns, tally.latency.max_ns());
  auto add = std::back_inserter(line);
  tally.latency.for_each_bucket(
      [&](uint32_t bucket, uint64_t count) { fmt::format_to(add, " {}:{}", bucket, count); });
  tally.lag.for_each_bucket(
      [&](uint32_t bucket, uint64_t count) { fmt::format_to(add, " L{}:{}", bucket, count); });
  return line + "\n";
}

std::string format_line(const ErrorLine& error) {
  std::string text = error.text;
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return "error " + text + "\n";
}

std::optional<ReportLine> parse_line(std::string_view line) {
  constexpr std::string_view kError = "error ";
  if (line.starts_with(kError)) return ErrorLine{std::string(line.substr(kError.size()))};
  auto words = os::split_words(line);
  if (words.empty()) return std::nullopt;
  if (words[0] == "plan") {
    if (auto plan = parse_plan(words)) return *plan;
  }
  if (words[0] == "tick") {
    if (auto tick = parse_tick(words)) return *tick;
  }
  return std::nullopt;
}

}  // namespace assay::load
