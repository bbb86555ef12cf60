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

}  // namespace

Measure make_measure(std::string id, std::string name, std::string unit,
                     std::span<const double> base, std::span<const double> next, double least) {
  Measure out;
  out.id = std::move(id);
  out.name = std::move(name);
  out.unit = std::move(unit);
  std::vector<double> a = logarithms(base, least);
  std::vector<double> b = logarithms(next, least);
  Welch welch = welch_test(a, b);
  Interval student = student_interval(welch);
  Interval bootstrap = bootstrap_interval(a, b);
  out.base = std::exp(mean(a));
  out.next = std::exp(mean(b));
  out.ratio = std::exp(welch.difference);
  out.low = std::exp(std::min(student.low, bootstrap.low));
  out.high = std::exp(std::max(student.high, bootstrap.high));
  out.p = welch.p;
  return out;
}

Outcome outcome_of(const Measure& measure, double p, double floor, bool within_floor) {
  if (p < 0.05 && measure.low > 1 + floor) return Outcome::higher;
  if (p < 0.05 && measure.high < 1 / (1 + floor)) return Outcome::lower;
  return within_floor ? Outcome::no_change : Outcome::undecided;
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

}  // namespace assay::analysis
