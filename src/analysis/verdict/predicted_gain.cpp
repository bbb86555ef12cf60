#include "analysis/verdict/predicted_gain.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

// What is not known of a cost: how much of it there is, and what goes with it.
enum class Outlook { least, likely, most };

double share_in(const Estimate& share, Outlook outlook) {
  if (outlook == Outlook::likely) return share.share;
  return outlook == Outlook::least ? share.low : share.high;
}

// The pool that is nearest to its limit.
size_t busiest_pool(const Demands& d) {
  auto busy = [](const PoolDemand& pool) {
    return pool.threads > 0 ? pool.own_s() / pool.threads : 0;
  };
  auto most = std::ranges::max_element(d.pools, {}, busy);
  return static_cast<size_t>(most - d.pools.begin());
}

double batching(Outlook outlook) {
  return outlook == Outlook::least ? 0 : outlook == Outlook::likely ? 0.5 : 1;
}

Removal cpu_removal(const GainBasis& basis, const Diagnosis& f, Outlook outlook) {
  Removal removal;
  removal.batching = batching(outlook);
  removal.cpu_share = share_in(f.share, outlook);
  if (outlook != Outlook::least) removal.cpu_share += f.cpu_along;
  bool of_stage = basis.verdict == VerdictKind::serial_stage && outlook != Outlook::least;
  if (of_stage || outlook == Outlook::most) removal.cpu_of_pool = busiest_pool(basis.demands);
  return removal;
}

double blocked_s(const Demands& d, BlockKind kind) {
  double sum = 0;
  for (const PoolDemand& pool : d.pools) sum += pool.blocked_s[static_cast<size_t>(kind)];
  return sum;
}

std::optional<Removal> wait_removal(const GainBasis& basis, const Diagnosis& f, Outlook outlook) {
  const Demands& d = basis.demands;
  double share = share_in(f.share, outlook), removed_s = share * d.busy_s;
  double of_kind_s = blocked_s(d, *f.wait);
  if (!resource_of(*f.wait) || of_kind_s <= 0) return {};
  Removal removal;
  removal.wait = f.wait;
  removal.wait_share = removed_s / of_kind_s;
  if (f.lock && *f.lock < d.locks.size() && d.locks[*f.lock].busy_share > 0) {
    removal.lock = f.lock;
    removal.wait_share = share / d.locks[*f.lock].busy_share;
  }
  removal.cpu_share = outlook == Outlook::least ? 0 : f.cpu_along;
  removal.batching = batching(outlook);
  return removal;
}

std::optional<double> predicted(const GainBasis& basis, const ServerModel& model,
                                const Diagnosis& f, Outlook outlook) {
  if (f.of == ShareOf::cpu_time) return model.predict(cpu_removal(basis, f, outlook));
  if (f.of != ShareOf::busy_time || !f.wait) return {};
  auto removal = wait_removal(basis, f, outlook);
  if (!removal) return {};
  return model.predict(*removal);
}

// Whether more would be asked for if more could be answered.
bool hangs_on_the_server(const GainBasis& basis) {
  return basis.verdict == VerdictKind::concurrency_limited ||
         describe(basis.verdict).limit != Limit::load;
}

}  // namespace

void add_prediction(const GainBasis& basis, const ServerModel& model, const Diagnosis& f,
                    Gain& gain) {
  bool about_time = f.cause != Cause::memory && !f.withholds;
  if (!about_time || basis.verdict == VerdictKind::withheld || !hangs_on_the_server(basis)) return;
  // The network of queues does not know the device.
  if (basis.verdict == VerdictKind::accelerator || f.wait == BlockKind::accelerator) return;
  if (basis.vitals.open_loop.value_or(0) > 0) return;  // the rate is the client's choice
  auto likely = predicted(basis, model, f, Outlook::likely),
       least = predicted(basis, model, f, Outlook::least),
       most = predicted(basis, model, f, Outlook::most);
  if (!likely || !least || !most) return;
  auto within_bound = [&](double value) {
    return gain.upper_bound ? std::min(value, *gain.upper_bound) : value;
  };
  Estimate estimate{within_bound(*likely), within_bound(std::min(*least, *likely)),
                    within_bound(std::max(*most, *likely))};
  gain.predicted = estimate;
  gain.worth = estimate.share;
  gain.text = fmt::format("predicted +{:.0f} % throughput (+{:.0f} to +{:.0f} %); {}",
                          estimate.share * 100, estimate.low * 100, estimate.high * 100, gain.text);
}

}  // namespace assay::analysis
