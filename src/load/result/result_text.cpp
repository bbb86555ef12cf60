#include "load/result/result_text.h"

#include <algorithm>
#include <iterator>

#include "base/units.h"
#include "load/secrets.h"

namespace assay::load {
namespace {

constexpr size_t kMostErrorRows = 12;
constexpr size_t kMostSeconds = 20;

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string clients_text(const LoadResult& result) {
  std::string text = plural(result.connections, "connection");
  if (result.streams > 1) text += " × " + plural(result.streams, "stream");
  if (result.threads > 1) text += ", " + plural(result.threads, "thread");
  if (result.rate > 0) return fmt::format("{}, open loop at {:g}/s", text, result.rate);
  return text + ", closed loop";
}

void add_errors(const LoadResult& result, std::string& out) {
  if (result.total.failed == 0) return;
  std::vector<std::pair<Outcome, uint64_t>> rows(result.total.errors.begin(),
                                                 result.total.errors.end());
  std::sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.second > b.second; });
  uint64_t rest = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= kMostErrorRows) {
      rest += rows[i].second;
      continue;
    }
    fmt::format_to(std::back_inserter(out), "  {:>10}  {}: {}\n", rows[i].second,
                   kind_name(rows[i].first.kind), describe(rows[i].first));
  }
  if (rest > 0) fmt::format_to(std::back_inserter(out), "  {:>10}  others\n", rest);
  if (!result.total.first_protocol_fault.empty()) {
    fmt::format_to(std::back_inserter(out), "              first fault: {}\n",
                   result.total.first_protocol_fault);
  }
}

void add_series(const LoadResult& result, std::string& out) {
  if (result.series.size() < 2) return;
  // Rows of long runs are grouped, so that the table stays short.
  size_t step = (result.series.size() + kMostSeconds - 1) / kMostSeconds;
  out += "\n     second    requests/s    errors       p50       p99       max\n";
  for (size_t i = 0; i < result.series.size(); i += step) {
    uint64_t ok = 0, failed = 0;
    double seconds = 0;
    int64_t p50 = 0, p99 = 0, max = 0;
    size_t end = std::min(i + step, result.series.size());
    for (size_t k = i; k < end; ++k) {
      const SecondRow& row = result.series[k];
      ok += row.ok;
      failed += row.failed;
      seconds += row.seconds;
      p50 = std::max(p50, row.p50_ns);
      p99 = std::max(p99, row.p99_ns);
      max = std::max(max, row.max_ns);
    }
    double since = static_cast<double>(result.series[end - 1].end - result.begin) / 1e9;
    fmt::format_to(std::back_inserter(out), "  {:>9.1f}  {:>12.0f}  {:>8}  {:>8}  {:>8}  {:>8}\n",
                   since, seconds > 0 ? static_cast<double>(ok) / seconds : 0, failed,
                   format_duration(p50), format_duration(p99), format_duration(max));
  }
  if (step > 1) {
    fmt::format_to(std::back_inserter(out),
                   "  ({} seconds to a row; latencies: the worst of them)\n", step);
  }
}

}  // namespace

std::string result_text(const LoadResult& result) {
  const Histogram& latency = result.total.latency;
  std::string out;
  auto add = std::back_inserter(out);
  fmt::format_to(add, "load      {} {} ({})\n", result.workload.method,
                 hide_secrets(result.workload.url.text()), result.address);
  fmt::format_to(add, "clients   {}\n", clients_text(result));
  fmt::format_to(
      add, "answers   {} in {:.2f} s: {:.0f} requests/s, {}/s received\n",
      format_count(result.total.ok), result.seconds(), result.throughput(),
      format_bytes(static_cast<uint64_t>(
          result.seconds() > 0 ? static_cast<double>(result.total.bytes_in) / result.seconds()
                               : 0)));
  if (result.workload.protocol == Protocol::grpc && result.total.messages != result.total.ok) {
    fmt::format_to(
        add, "messages  {}, {:.0f}/s\n", format_count(result.total.messages),
        result.seconds() > 0 ? static_cast<double>(result.total.messages) / result.seconds() : 0);
  }
  if (latency.count() > 0) {
    fmt::format_to(add, "latency   p50 {}   p90 {}   p99 {}   p99.9 {}   max {}\n",
                   format_duration(latency.quantile_ns(0.5)),
                   format_duration(latency.quantile_ns(0.9)),
                   format_duration(latency.quantile_ns(0.99)),
                   format_duration(latency.quantile_ns(0.999)), format_duration(latency.max_ns()));
  }
  double share = result.total.finished() > 0 ? static_cast<double>(result.total.failed) /
                                                   static_cast<double>(result.total.finished())
                                             : 0;
  fmt::format_to(add, "errors    {}{}\n", result.total.failed,
                 result.total.failed > 0 ? fmt::format(" ({})", format_percent(share)) : "");
  add_errors(result, out);
  if (result.unanswered > 0 && result.unanswered_oldest_ns > kNsPerSecond) {
    fmt::format_to(add, "open      {} unanswered at the end, the oldest for {}\n",
                   result.unanswered, format_duration(result.unanswered_oldest_ns));
  }
  if (result.unsent > 0) {
    fmt::format_to(add,
                   "late      {} requests were due and never sent: every client was waiting for an "
                   "answer\n",
                   result.unsent);
  }
  fmt::format_to(add, "generator {} of a CPU\n", format_percent(result.cpu_share()));
  if (std::string why = result.saturated(); !why.empty()) {
    fmt::format_to(add, "warning   {}\n", why);
  }
  add_series(result, out);
  return out;
}

}  // namespace assay::load
