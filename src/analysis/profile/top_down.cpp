#include "analysis/profile/top_down.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

using model::TopDownCounts;
using model::TopDownMethod;

constexpr double kStandsOut = 0.35;

struct Shares {
  double retiring = 0, bad = 0, frontend = 0, backend = 0;
  std::optional<double> other_thread;
  std::optional<double> heavy, mispredicted, fetch_latency, memory;
};

std::optional<double> value(const TopDownCounts& counts, const char* name) {
  auto found = counts.values.find(name);
  return found == counts.values.end() ? std::nullopt : std::optional(found->second);
}

double positive(double share) {
  return std::max(0.0, share);
}

std::optional<Shares> intel_metrics(const TopDownCounts& counts) {
  auto retiring = value(counts, "topdown-retiring"), bad = value(counts, "topdown-bad-spec");
  auto frontend = value(counts, "topdown-fe-bound"), backend = value(counts, "topdown-be-bound");
  if (!retiring || !bad || !frontend || !backend) return {};
  double all = *retiring + *bad + *frontend + *backend;
  if (all <= 0) return {};
  Shares out{*retiring / all, *bad / all, *frontend / all, *backend / all, {}, {}, {}, {}, {}};
  auto part = [&](const char* name) -> std::optional<double> {
    auto counted = value(counts, name);
    return counted ? std::optional(*counted / all) : std::nullopt;
  };
  out.heavy = part("topdown-heavy-ops");
  out.mispredicted = part("topdown-br-mispredict");
  out.fetch_latency = part("topdown-fetch-lat");
  out.memory = part("topdown-mem-bound");
  return out;
}

std::optional<Shares> intel_slots(const TopDownCounts& counts) {
  auto slots = value(counts, "topdown-total-slots");
  auto issued = value(counts, "topdown-slots-issued");
  auto retired = value(counts, "topdown-slots-retired");
  auto bubbles = value(counts, "topdown-fetch-bubbles");
  auto recovery = value(counts, "topdown-recovery-bubbles");
  if (!slots || !issued || !retired || !bubbles || !recovery || *slots <= 0) return {};
  Shares out;
  out.retiring = *retired / *slots;
  out.frontend = *bubbles / *slots;
  out.bad = positive((*issued - *retired + *recovery) / *slots);
  out.backend = positive(1 - out.retiring - out.frontend - out.bad);
  return out;
}

std::optional<Shares> zen(const TopDownCounts& counts) {
  auto cycles = value(counts, "ls_not_halted_cyc"), retired = value(counts, "ex_ret_ops");
  auto dispatched = value(counts, "de_src_op_disp.all");
  auto frontend = value(counts, "de_no_dispatch_per_slot.no_ops_from_frontend");
  auto backend = value(counts, "de_no_dispatch_per_slot.backend_stalls");
  if (!cycles || !retired || !dispatched || !frontend || !backend) return {};
  double slots = *cycles * counts.slots_per_cycle;
  if (slots <= 0) return {};
  Shares out;
  out.retiring = *retired / slots;
  out.bad = positive((*dispatched - *retired) / slots);
  out.frontend = *frontend / slots;
  out.backend = *backend / slots;
  if (auto other = value(counts, "de_no_dispatch_per_slot.smt_contention"))
    out.other_thread = *other / slots;
  auto loads = value(counts, "ex_no_retire.load_not_complete");
  auto stalls = value(counts, "ex_no_retire.not_complete");
  if (loads && stalls && *stalls > 0) out.memory = out.backend * *loads / *stalls;
  auto branches = value(counts, "ex_ret_brn_misp"),
       redirects = value(counts, "resyncs_or_nc_redirects");
  if (branches && redirects && *branches + *redirects > 0)
    out.mispredicted = out.bad * *branches / (*branches + *redirects);
  return out;
}

void add_divided(std::vector<TopDownShare>& out, double whole, std::optional<double> part,
                 TopDownShare first, TopDownShare second) {
  if (!part) return;
  first.level = second.level = 2;
  first.share = std::min(*part, whole);
  second.share = positive(whole - *part);
  out.push_back(first);
  out.push_back(second);
}

}  // namespace

std::vector<TopDownShare> top_down(const TopDownCounts& counts) {
  std::optional<Shares> shares;
  if (counts.method == TopDownMethod::intel_metrics) shares = intel_metrics(counts);
  if (counts.method == TopDownMethod::intel_slots) shares = intel_slots(counts);
  if (counts.method == TopDownMethod::zen) shares = zen(counts);
  if (!shares) return {};
  std::vector<TopDownShare> out;
  out.push_back({"retiring", "useful work", 1, shares->retiring});
  add_divided(out, shares->retiring, shares->heavy, {"retiring_heavy", "of several operations"},
              {"retiring_light", "simple instructions"});
  out.push_back({"bad_speculation", "discarded work", 1, shares->bad});
  add_divided(out, shares->bad, shares->mispredicted,
              {"bad_speculation_branches", "wrongly predicted branches"},
              {"bad_speculation_other", "other restarts"});
  out.push_back({"frontend_bound", "waiting for instructions", 1, shares->frontend});
  add_divided(out, shares->frontend, shares->fetch_latency,
              {"frontend_latency", "fetching them took long"},
              {"frontend_bandwidth", "too few at a time"});
  out.push_back({"backend_bound", "waiting for data or units", 1, shares->backend});
  add_divided(out, shares->backend, shares->memory, {"backend_memory", "memory"},
              {"backend_core", "execution units"});
  if (shares->other_thread)
    out.push_back({"smt_contention", "given to the core's other thread", 1, *shares->other_thread});
  return out;
}

std::string top_down_remark(const std::vector<TopDownShare>& shares) {
  const TopDownShare* most = nullptr;
  for (const TopDownShare& share : shares) {
    if (share.level == 1 && (most == nullptr || share.share > most->share)) most = &share;
  }
  if (most == nullptr || most->share < kStandsOut) return "";
  return fmt::format("{:.0f} % of the issue slots: {}", most->share * 100, most->name);
}

}  // namespace assay::analysis
