#include "analysis/compare/statistics/measure.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/statistics/statistics.h"

namespace assay::analysis {
namespace {

std::vector<double> logarithms(std::span<const double> values, double least) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (double value : values) logs.push_back(std::log(std::max(value, least)));
  return logs;
}

std::vector<double> slowness_of(const Side& side) {
  std::vector<double> logs;
  for (const RunValues& run : side.runs) logs.push_back(std::log(run.slowness));
  return logs;
}

void fill(const Welch& welch, std::span<const double> a, std::span<const double> b, Measure& out) {
  Interval student = student_interval(welch);
  Interval bootstrap = bootstrap_interval(a, b);
  out.base = std::exp(mean(a));
  out.next = std::exp(mean(b));
  out.ratio = std::exp(welch.difference);
  out.low = std::exp(std::min(student.low, bootstrap.low));
  out.high = std::exp(std::max(student.high, bootstrap.high));
  out.p = welch.p;
}

// What a zero was set to, to have a logarithm, is nothing to show.
void show_zeros(std::span<const double> base, std::span<const double> next, Measure& out) {
  auto is_zero = [](double value) { return value <= 0; };
  if (std::ranges::all_of(base, is_zero)) out.base = 0;
  if (std::ranges::all_of(next, is_zero)) out.next = 0;
}

}  // namespace

Measure make_measure(std::string id, std::string name, std::string unit,
                     std::span<const double> base, std::span<const double> next, double least) {
  Measure out;
  out.id = std::move(id);
  out.name = std::move(name);
  out.unit = std::move(unit);
  std::vector<double> a = logarithms(base, least);
  std::vector<double> b = logarithms(next, least);
  fill(welch_test(a, b), a, b, out);
  show_zeros(base, next, out);
  return out;
}

FunctionMeasure make_function_measure(const Comparison& comparison, std::span<const double> base,
                                      std::span<const double> next, double least) {
  Beside beside = welch_beside(logarithms(base, least), logarithms(next, least),
                               slowness_of(comparison.base), slowness_of(comparison.next));
  FunctionMeasure out;
  out.measure.unit = "ns";
  out.slope = beside.slope;
  fill(beside.welch, beside.a, beside.b, out.measure);
  show_zeros(base, next, out.measure);
  return out;
}

Outcome outcome_of(const Measure& measure, double level, bool certainly_none) {
  if (measure.p < level && measure.low > 1 + kSmallestFloor) return Outcome::higher;
  if (measure.p < level && measure.high < 1 / (1 + kSmallestFloor)) return Outcome::lower;
  // Where runs differ much, a difference may be within that and yet plainly be one.
  bool around_none = measure.low <= 1 && measure.high >= 1;
  bool negligible = measure.low > 1 / (1 + kSmallestFloor) && measure.high < 1 + kSmallestFloor;
  return certainly_none && (around_none || negligible) ? Outcome::no_change : Outcome::undecided;
}

double divisor(const RunValues& run, Per per) {
  switch (per) {
    case Per::request:
      return run.requests;
    case Per::second:
      return run.seconds;
    case Per::share:
      return run.cpu_ns;
    case Per::run:
      return 1;
  }
  return 1;
}

double function_divisor(const RunValues& run, Per per) {
  if (per == Per::share && run.sampled_ns > 0) return run.sampled_ns;
  return divisor(run, per) * run.sampled_share;
}

}  // namespace assay::analysis
