#include "analysis/compare/heap_changes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "analysis/compare/functions/comparable_name.h"
#include "analysis/compare/statistics/measure.h"
#include "analysis/compare/statistics/statistics.h"

namespace assay::analysis {
namespace {

constexpr double kSmallestShare = 0.005;  // of all that lived or was allocated: less is not tested
constexpr double kSamplingErrors = 2.5;   // standard errors
constexpr double kOf95 = 1.96;            // standard errors in a 95 % half-width

using Key = std::pair<std::string, std::string>;

struct Part {
  Measure HeapChange::*measure;
  bool live;
  bool objects;
};
constexpr Part kParts[] = {{&HeapChange::allocated, false, false},
                           {&HeapChange::objects, false, true},
                           {&HeapChange::live, true, false}};

class HeapSearch {
 public:
  explicit HeapSearch(const Comparison& comparison) : comparison_(comparison) {
    for (const Side* side : {&comparison.base, &comparison.next}) {
      for (const RunValues& run : side->runs) runs_.push_back(&run);
    }
    match_unknown_modules();
  }

  HeapChanges run(size_t most) {
    HeapChanges out;
    bool all = std::ranges::all_of(runs_, [](const RunValues* run) { return run->heap.present; });
    if (!all) return out;
    measure_sites();
    decide();
    out.tested = sites_.size();
    for (Site& site : sites_) {
      if (site.shown) out.changes.push_back(std::move(site.change));
    }
    std::ranges::stable_sort(out.changes, std::greater{},
                             [&](const HeapChange& change) { return weight(change); });
    if (out.changes.size() > most) out.changes.resize(most);
    return out;
  }

 private:
  struct Site {
    Key key;
    HeapChange change;
    bool shown = false;
  };

  // Nothing but the name can tell, where a profile does not say which file a function is in: it is
  // that of the one file which has the function in the other runs.
  void match_unknown_modules() {
    std::map<std::string, std::set<std::string>> modules;
    std::set<std::string> told_apart;  // by one of the runs
    for (const RunValues* run : runs_) {
      for (const auto& [key, site] : run->heap.sites) {
        modules[key.first].insert(key.second);
        bool both = !key.second.empty() && run->heap.sites.contains({key.first, ""});
        if (both) told_apart.insert(key.first);
      }
    }
    for (const auto& [function, files] : modules) {
      if (files.size() == 2 && files.begin()->empty() && !told_apart.contains(function))
        known_as_[{function, *files.rbegin()}] = {function, ""};
    }
  }
  const HeapSiteValues* site_of(const RunValues& run, const Key& key) const {
    auto found = run.heap.sites.find(key);
    if (found != run.heap.sites.end()) return &found->second;
    auto other = known_as_.find(key);
    if (other == known_as_.end()) return nullptr;
    found = run.heap.sites.find(other->second);
    return found == run.heap.sites.end() ? nullptr : &found->second;
  }

  static const HeapAmount& amount(const HeapSiteValues& site, bool live) {
    return live ? site.live : site.allocated;
  }
  // What lives is a level; what is allocated is divided like time.
  double divided_by(const RunValues& run, const Part& part) const {
    Per per = comparison_.per == Per::share ? Per::second : comparison_.per;
    bool as_it_is = part.live || !comparison_.heap_timed;
    return as_it_is ? 1 : std::max(1e-9, divisor(run, per));
  }
  // What a profile does not know is not compared.
  bool is_known(const Part& part) const {
    return std::ranges::all_of(runs_, [&](const RunValues* run) {
      return part.live ? run->heap.live_known : run->heap.freed_known;
    });
  }
  double value(const RunValues& run, const Key& key, const Part& part) const {
    if (!is_known(part)) return 0;
    const HeapSiteValues* site = site_of(run, key);
    if (site == nullptr) return 0;
    const HeapAmount& of = amount(*site, part.live);
    return (part.objects ? of.objects : of.bytes) / divided_by(run, part);
  }
  std::vector<double> values(const Side& side, const Key& key, const Part& part) const {
    std::vector<double> out;
    for (const RunValues& run : side.runs) out.push_back(value(run, key, part));
    return out;
  }

  // Of the side's own whole, live or allocated, whichever is more.
  double share(const Side& side, const Key& key) const {
    double live = 0, allocated = 0, all_live = 0, all_allocated = 0;
    for (const RunValues& run : side.runs) {
      all_live += run.heap.live.bytes;
      all_allocated += run.heap.allocated.bytes;
      const HeapSiteValues* site = site_of(run, key);
      if (site == nullptr) continue;
      live += site->live.bytes;
      allocated += site->allocated.bytes;
    }
    return std::max(all_live > 0 ? live / all_live : 0,
                    all_allocated > 0 ? allocated / all_allocated : 0);
  }

  void measure_sites() {
    std::set<Key> keys;
    for (const RunValues* run : runs_) {
      for (const auto& [key, site] : run->heap.sites) keys.insert(key);
    }
    for (const auto& [key, other] : known_as_) keys.erase(other);
    for (const Key& key : keys) {
      double base = share(comparison_.base, key), next = share(comparison_.next, key);
      if (std::max(base, next) < kSmallestShare) continue;
      Site site;
      site.key = key;
      site.change.function = key.first;
      if (base == 0) site.change.kind = ChangeKind::appeared;
      if (next == 0) site.change.kind = ChangeKind::vanished;
      place(site);
      for (const Part& part : kParts) {
        site.change.*part.measure = make_measure(
            "", "", part.objects ? "objects" : "B", values(comparison_.base, key, part),
            values(comparison_.next, key, part), least(key, part));
      }
      sites_.push_back(std::move(site));
    }
  }

  // Where it is now; where it was, when it is gone.
  void place(Site& site) const {
    for (const RunValues* run : runs_) {
      const HeapSiteValues* found = site_of(*run, site.key);
      if (found == nullptr) continue;
      bool says_module = !comparable_module(found->module).empty() || site.change.module.empty();
      if (says_module) site.change.module = found->module;
      site.change.file = found->file;
      site.change.line = found->line;
    }
  }

  // What was not seen at all may still have been half a sample.
  double least(const Key& key, const Part& part) const {
    const RunValues& first = *runs_.front();
    double half = std::max(1.0, first.heap.rate_bytes) / 2 / divided_by(first, part);
    if (!part.objects) return half;
    double bytes = 0, objects = 0;
    for (const RunValues* run : runs_) {
      const HeapSiteValues* site = site_of(*run, key);
      if (site == nullptr) continue;
      bytes += site->allocated.bytes;
      objects += site->allocated.objects;
    }
    return bytes > 0 ? half * objects / bytes : half;
  }

  bool beyond_sampling_error(const Site& site, const Part& part) const {
    auto error = [&](const RunValues& run) {
      const HeapSiteValues* found = site_of(run, site.key);
      if (found == nullptr) return 0.0;
      const HeapAmount& of = amount(*found, part.live);
      return (part.objects ? of.objects_error : of.bytes_error) / divided_by(run, part) / kOf95;
    };
    const Measure& measure = site.change.*part.measure;
    double one = std::hypot(error(*runs_.front()), error(*runs_.back()));
    return std::abs(measure.next - measure.base) > kSamplingErrors * one &&
           std::abs(std::log(measure.ratio)) > std::log1p(kSmallestFloor);
  }

  void decide() {
    std::vector<double> p;
    for (const Site& site : sites_) {
      for (const Part& part : kParts) p.push_back((site.change.*part.measure).p);
    }
    std::vector<double> adjusted = benjamini_hochberg(p);
    size_t asked = 0;
    for (Site& site : sites_) {
      for (const Part& part : kParts) {
        Measure& measure = site.change.*part.measure;
        measure.p = adjusted[asked++];
        measure.outcome =
            comparison_.descriptive ? Outcome::descriptive : outcome_of(measure, kHeapLevel, false);
        site.shown = site.shown || is_finding(measure.outcome) ||
                     (comparison_.descriptive && beyond_sampling_error(site, part));
      }
    }
  }

  // Of the whole, live or allocated, by which it changed.
  double weight(const HeapChange& change) const {
    auto part = [&](const Measure& measure, bool live) {
      double whole = 0;
      for (const Side* side : {&comparison_.base, &comparison_.next}) {
        double sum = 0;
        for (const RunValues& run : side->runs)
          sum += (live ? run.heap.live : run.heap.allocated).bytes /
                 divided_by(run, live ? kParts[2] : kParts[0]);
        whole = std::max(whole, sum / static_cast<double>(side->runs.size()));
      }
      return whole > 0 ? std::abs(measure.next - measure.base) / whole : 0;
    };
    return std::max(part(change.allocated, false), part(change.live, true));
  }

  const Comparison& comparison_;
  std::vector<const RunValues*> runs_;
  std::vector<Site> sites_;
  std::map<Key, Key> known_as_;  // where a run does not know the module
};

}  // namespace

HeapChanges heap_changes(const Comparison& comparison, size_t most) {
  return HeapSearch(comparison).run(most);
}

}  // namespace assay::analysis
