#include "session/load/load_window.h"

#include <algorithm>
#include <array>

#include "base/units.h"

namespace assay::session {
namespace {

constexpr double kManyErrors = 0.01;  // of the requests: worth a word in the report

struct RowShape {
  const char* name;
  model::SeriesKind kind;
  const char* unit;
};
constexpr std::array kShapes{RowShape{"requests", model::SeriesKind::cumulative, "count"},
                             RowShape{"errors", model::SeriesKind::cumulative, "count"},
                             RowShape{"latency_p50", model::SeriesKind::gauge, "ns"},
                             RowShape{"latency_p90", model::SeriesKind::gauge, "ns"},
                             RowShape{"latency_p99", model::SeriesKind::gauge, "ns"},
                             RowShape{"latency_max", model::SeriesKind::gauge, "ns"},
                             RowShape{"generator_cpu", model::SeriesKind::cumulative, "ns"}};

}  // namespace

void LoadWindow::begin(run::Writer& writer, std::atomic<uint32_t>& next_series, bool command,
                       TimeNs now) {
  writer_ = &writer;
  command_ = command;
  for (size_t row = 0; row < kShapes.size(); ++row) {
    model::Series series;
    series.id = {next_series++};
    series_[row] = series.id;
    series.scope = model::SeriesScope::load;
    series.kind = kShapes[row].kind;
    series.name = kShapes[row].name;
    series.unit = kShapes[row].unit;
    writer.add_series(series);
  }
  since_point_.clear();
  in_window_ = load::LoadResult{};
  // The first tick of the window may have begun a moment before it; its time counts from there.
  bool recent = now - last_tick_ < kNsPerSecond;
  in_window_.begin = in_window_.end = recent ? last_tick_ : now;
  cpu_at_begin_ = cpu_ns_;
  next_point_ = in_window_.begin;
  write_point(in_window_.begin);  // the counts are of that time
}

void LoadWindow::put(Row row, TimeNs time, int64_t value) {
  writer_->add_point({series_[row], time, value});
}

void LoadWindow::write_point(TimeNs time) {
  put(generator_cpu, time, cpu_ns_);
  if (!command_) {
    put(requests, time, static_cast<int64_t>(ok_ + failed_));
    put(errors, time, static_cast<int64_t>(failed_));
    if (since_point_.count() > 0) {
      put(p50, time, since_point_.quantile_ns(0.5));
      put(p90, time, since_point_.quantile_ns(0.9));
      put(p99, time, since_point_.quantile_ns(0.99));
      put(max, time, since_point_.max_ns());
    }
  }
  since_point_.clear();
  last_point_ = time;
  while (next_point_ <= time) next_point_ += kNsPerSecond;
}

void LoadWindow::add_tick(const load::TickLine& tick) {
  if (closed_) return;
  ok_ += tick.ok;
  failed_ += tick.failed;
  cpu_ns_ += tick.cpu_ns;
  last_tick_ = std::max(last_tick_, tick.end);
  if (writer_ == nullptr) return;
  since_point_.merge(tick.latency);
  load::Tally& total = in_window_.total;
  total.ok += tick.ok;
  total.failed += tick.failed;
  total.busiest_cpu_ns += tick.cpu_ns;
  total.busiest_wait_ns += tick.wait_ns;
  total.latency.merge(tick.latency);
  total.lag.merge(tick.lag);
  in_window_.end = std::max(in_window_.end, tick.end);
  if (tick.end >= next_point_) write_point(tick.end);
}

void LoadWindow::set_group_cpu(TimeNs now, int64_t cpu_ns) {
  cpu_ns_ = std::max(cpu_ns_, cpu_ns);
  if (writer_ != nullptr && now >= next_point_) write_point(now);
}

void LoadWindow::fact(const char* key, const std::string& value) {
  writer_->add_fact({"load", key, value});
}

void LoadWindow::write_url_facts(const load::PlanLine& plan) {
  in_window_.rate = plan.rate;
  const load::Tally& total = in_window_.total;
  fact("mode", plan.open_loop ? "open" : "closed");
  fact("connections", std::to_string(plan.connections));
  fact("streams", std::to_string(plan.streams));
  fact("rate", fmt::format("{}", plan.rate));
  fact("requests", std::to_string(total.finished()));
  fact("errors", std::to_string(total.failed));
  fact("throughput_per_s", fmt::format("{:.3f}", in_window_.throughput()));
  fact("p50_ns", std::to_string(total.latency.quantile_ns(0.5)));
  fact("p90_ns", std::to_string(total.latency.quantile_ns(0.9)));
  fact("p99_ns", std::to_string(total.latency.quantile_ns(0.99)));
  fact("max_ns", std::to_string(total.latency.max_ns()));
  fact("generator_cpu_share", fmt::format("{:.4f}", in_window_.cpu_share()));
  std::string saturated = in_window_.saturated();
  fact("generator_saturated", saturated.empty() ? "no" : "yes");
  if (!saturated.empty()) writer_->add_note({"load", saturated, ""});
  double failed = total.finished() > 0
                      ? static_cast<double>(total.failed) / static_cast<double>(total.finished())
                      : 0;
  if (failed > kManyErrors) {
    writer_->add_note(
        {"load", fmt::format("{} of the requests failed", format_percent(failed)), ""});
  }
}

void LoadWindow::write_command_facts(int64_t window_ns) {
  double share = window_ns > 0
                     ? static_cast<double>(cpu_ns_ - cpu_at_begin_) / static_cast<double>(window_ns)
                     : 0;
  fact("generator_cpu_share", fmt::format("{:.4f}", share));
  fact("generator_saturated", "unknown");
}

void LoadWindow::finish(const LoadFacts& facts, TimeNs window_begin, TimeNs window_end) {
  if (writer_ == nullptr) return;
  // What came after the last point would otherwise be missing from the series.
  TimeNs last = command_ ? window_end : last_tick_;
  if (last > last_point_) write_point(last);
  fact("kind", facts.command ? "command" : "url");
  fact("what", facts.what);
  fact("ended", facts.ended);
  fact("restarts", std::to_string(facts.restarts));
  if (!facts.output.empty()) fact("output", facts.output);
  if (facts.command) {
    write_command_facts(window_end - window_begin);
  } else {
    write_url_facts(facts.plan);
  }
  if (facts.ended != "covered") {
    writer_->add_note(
        {"load", fmt::format("the load did not cover the capture ({})", facts.ended), ""});
  }
}

}  // namespace assay::session
