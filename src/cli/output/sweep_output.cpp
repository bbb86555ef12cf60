#include "cli/output/sweep_output.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <nlohmann/json.hpp>

#include "base/units.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarCells = 24;

const char* trend_name(analysis::Trend trend) {
  switch (trend) {
    case analysis::Trend::grows:
      return "grows";
    case analysis::Trend::shrinks:
      return "shrinks";
    case analysis::Trend::steady:
      return "steady";
  }
  return "";
}

void add_levels(const analysis::Scaling& scaling, std::string& out) {
  double most = 1e-9;
  for (const auto& level : scaling.levels) most = std::max(most, level.throughput);
  out += "\n  clients  requests/s         fit       p50       p99  errors  generator\n";
  for (const auto& level : scaling.levels) {
    int cells = static_cast<int>(std::lround(level.throughput / most * kBarCells));
    std::string bar;
    for (int i = 0; i < cells; ++i) bar += "█";
    fmt::format_to(
        std::back_inserter(out), "  {:>7}  {:>10.0f}  {:>10}  {:>8}  {:>8}  {:>6}  {:>8}{}  {}\n",
        level.clients, level.throughput,
        scaling.fit ? fmt::format("{:.0f}", scaling.fit->at(level.clients)) : "–",
        format_duration(level.p50_ns), format_duration(level.p99_ns), level.errors,
        format_percent(level.generator_share), level.generator_saturated ? "!" : " ", bar);
  }
}

void add_fit(const analysis::Scaling& scaling, std::string& out) {
  if (!scaling.fit) {
    fmt::format_to(std::back_inserter(out), "\nno curve: {}\n", scaling.no_fit);
    return;
  }
  const analysis::UslFit& fit = *scaling.fit;
  fmt::format_to(std::back_inserter(out),
                 "\nUniversal Scalability Law (ranges hold 95 % of refits; worst level {} off)\n"
                 "  one client alone   {:>10.0f} requests/s  ({:.0f}–{:.0f})\n"
                 "  contention σ       {:>10.4f}             ({:.4f}–{:.4f})\n"
                 "  crosstalk κ        {:>10.6f}             ({:.6f}–{:.6f})\n",
                 format_percent(fit.worst_error), fit.lambda, fit.lambda_range.low,
                 fit.lambda_range.high, fit.sigma, fit.sigma_range.low, fit.sigma_range.high,
                 fit.kappa, fit.kappa_range.low, fit.kappa_range.high);
}

void add_rows(const analysis::Scaling& scaling, std::string& out) {
  out += "\nThread time  threads in each state, on average, by clients\n";
  fmt::format_to(std::back_inserter(out), "  {:<24}", "");
  for (const auto& level : scaling.levels) {
    fmt::format_to(std::back_inserter(out), "{:>9}", level.clients);
  }
  out += "\n";
  for (const analysis::ScalingRow& row : scaling.rows) {
    fmt::format_to(std::back_inserter(out), "  {:<24}", row.name);
    for (double threads : row.threads) {
      fmt::format_to(std::back_inserter(out), "{:>9.2f}", threads);
    }
    fmt::format_to(std::back_inserter(out), "  {}\n",
                   row.trend == analysis::Trend::steady ? "" : trend_name(row.trend));
  }
  out += "\nPer request  CPU time by clients\n";
  for (const analysis::ScalingRow& row : scaling.rows) {
    if (row.id != "user" && row.id != "kernel") continue;
    fmt::format_to(std::back_inserter(out), "  {:<24}", row.name);
    for (double ns : row.per_request) {
      fmt::format_to(std::back_inserter(out), "{:>9}", format_duration(std::llround(ns)));
    }
    out += "\n";
  }
}

// JSON has no infinity: null is "none".
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json fit_json(const analysis::UslFit& fit) {
  auto range = [](const analysis::UslRange& r) {
    return Json::array({number(r.low), number(r.high)});
  };
  return {{"lambda_per_s", fit.lambda},
          {"lambda_ci", range(fit.lambda_range)},
          {"sigma", fit.sigma},
          {"sigma_ci", range(fit.sigma_range)},
          {"kappa", fit.kappa},
          {"kappa_ci", range(fit.kappa_range)},
          {"best_clients", number(fit.peak_concurrency)},
          {"best_clients_ci", range(fit.peak_range)},
          {"best_throughput_per_s", number(fit.peak_throughput)},
          {"knee_clients", number(fit.knee_concurrency)},
          {"worst_relative_error", fit.worst_error}};
}

}  // namespace

std::string sweep_text(const SweepTitle& title, const analysis::Scaling& scaling) {
  std::string out = fmt::format("Sweep: {}\nload   {}\nlevels {} of {}\n", title.target, title.load,
                                scaling.levels.size(), format_duration(title.level_ns));
  if (!scaling.levels.empty()) {
    add_levels(scaling, out);
    add_fit(scaling, out);
    add_rows(scaling, out);
  }
  if (!scaling.sentences.empty()) out += "\n";
  for (const std::string& sentence : scaling.sentences) out += sentence + "\n";
  return out;
}

std::string sweep_json(const SweepTitle& title, const analysis::Scaling& scaling) {
  Json levels = Json::array();
  for (size_t i = 0; i < scaling.levels.size(); ++i) {
    const analysis::ScalingLevel& level = scaling.levels[i];
    levels.push_back({{"clients", level.clients},
                      {"throughput_per_s", level.throughput},
                      {"fit_per_s", scaling.fit ? number(scaling.fit->at(level.clients)) : Json()},
                      {"p50_ns", level.p50_ns},
                      {"p90_ns", level.p90_ns},
                      {"p99_ns", level.p99_ns},
                      {"requests", level.requests},
                      {"errors", level.errors},
                      {"window_ns", level.window_ns},
                      {"generator_cpu_share", level.generator_share},
                      {"generator_saturated", level.generator_saturated},
                      {"covered", level.covered}});
  }
  Json rows = Json::array();
  for (const analysis::ScalingRow& row : scaling.rows) {
    rows.push_back({{"kind", row.id},
                    {"threads", row.threads},
                    {"ns_per_request", row.per_request},
                    {"trend", trend_name(row.trend)}});
  }
  Json json{
      {"schema", "assay-sweep-1"},
      {"target", title.target},
      {"load", title.load},
      {"levels", levels},
      {"fit", scaling.fit ? fit_json(*scaling.fit) : Json(nullptr)},
      {"no_fit", scaling.no_fit},
      {"fit_leaves_out_saturated_levels", scaling.fit_leaves_out},
      {"best_level_clients", scaling.levels.empty() ? 0 : scaling.levels[scaling.best].clients},
      {"more_clients_help", scaling.more_clients_help},
      {"thread_time", rows},
      {"sentences", scaling.sentences}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::cli
