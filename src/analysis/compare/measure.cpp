#include "analysis/compare/measure.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/statistics.h"

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
  return out;
}

Outcome outcome_of(const Measure& measure, double level, bool certainly_none) {
  if (measure.p < level && measure.low > 1 + kSmallestFloor) return Outcome::higher;
  if (measure.p < level && measure.high < 1 / (1 + kSmallestFloor)) return Outcome::lower;
  return certainly_none ? Outcome::no_change : Outcome::undecided;
}

double divisor(const RunValues& run, Per per) {
  switch (per) {
    case Per::request:
      return run.requests;
    case Per::second:
      return run.seconds;
    case Per::share:
      return run.cpu_ns;
  }
  return 1;
}

double function_divisor(const RunValues& run, Per per) {
  return divisor(run, per) * run.sampled_share;
}

}  // namespace assay::analysis
