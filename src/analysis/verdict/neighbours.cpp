#include "analysis/verdict/neighbours.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

constexpr double kMuchOfHost = 0.25;
constexpr double kGeneratorSeen = 0.02;  // CPUs
constexpr double kNamed = 0.05;          // CPUs: who uses less is not named
constexpr size_t kMostNamed = 3;

double much(const Vitals& v) {
  return kMuchOfHost * v.host_cpus.value_or(1);
}

}  // namespace

double cpus_of_others(const Vitals& v) {
  return std::max(0.0, v.other_cpus.value_or(0) - v.generator_cpus.value_or(0));
}

bool strangers_hold_much(const Vitals& v) {
  return v.stranger_cpus && *v.stranger_cpus >= much(v);
}

bool others_hold_much(const Basis& basis) {
  const Vitals& v = basis.vitals;
  if (strangers_hold_much(v)) return true;
  double used = v.cpus_used.value_or(0);
  double known = v.stranger_cpus.value_or(0) + v.connected_cpus.value_or(0);
  if (known >= much(v) && known >= 0.5 * used) return true;
  // A load generator that was not measured counts as a stranger. It uses about as much CPU as the
  // target, so strangers must use more than that.
  bool generator_known =
      basis.run.workload.generator_cpus || v.generator_cpus.value_or(0) >= kGeneratorSeen;
  double least = generator_known ? 0.5 : 1.5;
  double others = cpus_of_others(v);
  return others >= much(v) && others >= least * used;
}

double free_share(const Vitals& v) {
  double usable = v.usable_cpus.value_or(0);
  if (usable <= 0) return std::clamp(1 - v.utilisation.value_or(0), 0.0, 1.0);
  double free = usable - v.cpus_used.value_or(0);
  if (v.host_busy && v.host_cpus) free = std::min(free, *v.host_cpus * (1 - *v.host_busy));
  return std::clamp(free / usable, 0.0, 1.0);
}

std::string largest_others(const Measured& run) {
  std::string text;
  size_t named = 0;
  for (const model::OtherUser& user : run.others.largest) {
    if (user.cpus < kNamed || named++ >= kMostNamed) break;
    text += fmt::format("{}{} ({}) {:.2f}", text.empty() ? "" : ", ",
                        user.name.empty() ? "a nameless one" : user.name,
                        model::relation_name(user.relation), user.cpus);
  }
  return text;
}

std::string others_text(const Basis& basis, double cpus) {
  std::string names = largest_others(basis.run);
  return fmt::format("other programs keep {:.1f} CPUs busy{}{}", cpus, names.empty() ? "" : ": ",
                     names);
}

}  // namespace assay::analysis
