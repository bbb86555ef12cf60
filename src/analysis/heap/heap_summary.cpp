#include "analysis/heap/heap_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "analysis/profile/allocation_frames.h"

namespace assay::analysis {
namespace {

constexpr double kConfidence = 1.96;  // half-width of 95 % in standard deviations
constexpr size_t kTimelinePoints = 120;
constexpr size_t kMostMarks = 12;
constexpr size_t kFewestLeakSamples = 5;
constexpr double kLeakKeeps = 0.5;  // of what a site allocates, a leak keeps more than this
constexpr size_t kMostThreads = 50;

struct Event {
  TimeNs begin = 0, end = INT64_MAX;  // end: never freed in the window
  uint32_t thread = 0;
  model::StackId stack;
  uint64_t rate = 0;
  double size = 0, chance = 1;
};

// A sum with its variance.
struct Sum {
  double bytes = 0, objects = 0, bytes_variance = 0, objects_variance = 0;
  uint64_t samples = 0;

  void add(const Event& event) {
    double weight = 1 / event.chance, spread = (1 - event.chance) * weight * weight;
    bytes += event.size * weight;
    objects += weight;
    bytes_variance += event.size * event.size * spread;
    objects_variance += spread;
    ++samples;
  }
  // Another profiler's sum, of which only the mean size tells how likely its samples were.
  void add(int64_t sum_bytes, int64_t sum_objects, int64_t rate) {
    auto more = static_cast<double>(sum_bytes), count = static_cast<double>(sum_objects);
    if (more <= 0 && count <= 0) return;
    bytes += more;
    objects += count;
    ++samples;
    if (rate <= 1 || more <= 0 || count <= 0) return;
    double mean = more / count, chance = -std::expm1(-mean / static_cast<double>(rate));
    double spread = chance > 0 ? (1 - chance) / chance : 0;
    bytes_variance += more * mean * spread;
    objects_variance += count * spread;
  }
  HeapAmount amount() const {
    return {bytes, objects, kConfidence * std::sqrt(bytes_variance),
            kConfidence * std::sqrt(objects_variance), samples};
  }
};

struct SiteKey {
  std::string function, module, file;
  uint32_t line = 0;
  auto operator<=>(const SiteKey&) const = default;
};

struct SiteSums {
  SiteKey key;
  bool named = true;
  Sum live, allocated, old;
  double freed_bytes = 0;
  std::vector<std::pair<int64_t, double>> lifetimes;  // with their weights in bytes
  std::vector<double> growth;
  model::StackId heaviest;
  std::pair<double, double> heaviest_weight;
};

struct StackSums {
  Sum live, allocated;
  double held = 0;  // of `live`: old enough to be suspect, or all of it where there are no times
  uint32_t site = 0;
  // What lives was allocated, but for profiles that do not tell of what was.
  double weight() const { return std::max(live.bytes, allocated.bytes); }
};

class Summariser {
 public:
  Summariser(const run::Reader& reader, const CallTree& tree, const std::vector<bool>& threads)
      : reader_(reader), tree_(tree), threads_(threads), info_(reader.contents().info) {}

  Result<HeapSummary> summarise(size_t most_sites);

 private:
  Result<void> read_events();
  void read_sums();
  void add(const model::HeapSum& sum);
  void choose_marks();
  void add(const Event& event);
  StackSums& sums_of(model::StackId stack);
  uint32_t site_of(model::StackId stack);
  void lay_timeline();
  HeapSite finish(SiteSums& sums) const;
  bool is_leak(const SiteSums& sums, const HeapSite& site) const;
  void finish_threads();

  const run::Reader& reader_;
  const CallTree& tree_;
  const std::vector<bool>& threads_;
  const model::RunInfo& info_;
  std::vector<Event> events_;
  std::unordered_map<uint32_t, size_t> slot_of_stack_;
  std::vector<std::pair<model::StackId, StackSums>> stacks_;
  std::map<SiteKey, uint32_t> site_ids_;
  std::vector<SiteSums> sites_;
  std::unordered_map<uint32_t, Sum> by_thread_;
  Sum live_, allocated_;
  double rate_weight_ = 0;  // rates times the bytes that were sampled with them
  HeapSummary out_;
};

Result<void> Summariser::read_events() {
  run::TimeRange window{info_.window_begin_ns, INT64_MAX};
  std::unordered_map<uint64_t, size_t> by_id;
  std::map<uint64_t, uint64_t> rates;
  auto done = reader_.for_each_heap_alloc(window, [&](const model::HeapAlloc& row) {
    if (row.thread.value >= threads_.size() || !threads_[row.thread.value]) return;
    by_id[row.id] = events_.size();
    events_.push_back({row.time, INT64_MAX, row.thread.value, row.stack, row.rate_bytes,
                       static_cast<double>(row.size_bytes), row.chance()});
    ++rates[row.rate_bytes];
  });
  if (!done) return done;
  for (const auto& [rate, count] : rates) {
    if (out_.rate_bytes == 0 || count > rates[out_.rate_bytes]) out_.rate_bytes = rate;
  }
  return reader_.for_each_heap_free({}, [&](const model::HeapFree& row) {
    auto found = by_id.find(row.id);
    if (found != by_id.end())
      events_[found->second].end = std::max(row.time, events_[found->second].begin);
  });
}

void Summariser::read_sums() {
  const run::Contents& run = reader_.contents();
  out_.timed = false;
  for (const model::Fact& fact : run.facts) {
    if (fact.scope != "import" || fact.value != "absent") continue;
    if (fact.key == "heap_live") out_.live_known = false;
    if (fact.key == "heap_freed") out_.freed_known = false;
  }
  std::map<int64_t, uint64_t> rates;
  for (const model::HeapSum& sum : run.heap_sums) {
    if (sum.thread.value >= threads_.size() || !threads_[sum.thread.value]) continue;
    add(sum);
    ++rates[sum.rate_bytes];
  }
  uint64_t most = 0;
  for (const auto& [rate, count] : rates) {
    if (count > most) out_.rate_bytes = static_cast<uint64_t>(rate);
    most = std::max(most, count);
  }
}

void Summariser::add(const model::HeapSum& sum) {
  StackSums& stack = sums_of(sum.stack);
  SiteSums& site = sites_[stack.site];
  for (Sum* live : {&live_, &stack.live, &site.live})
    live->add(sum.live_bytes, sum.live_objects, sum.rate_bytes);
  for (Sum* all : {&allocated_, &stack.allocated, &site.allocated, &by_thread_[sum.thread.value]})
    all->add(sum.bytes, sum.objects, sum.rate_bytes);
  site.freed_bytes += static_cast<double>(std::max<int64_t>(0, sum.bytes - sum.live_bytes));
  stack.held = stack.live.bytes;
}

// The snapshots that were asked for, or quarters of the window.
void Summariser::choose_marks() {
  std::vector<TimeNs> marks;
  for (const model::HeapSnapshot& snapshot : reader_.contents().heap_snapshots) {
    TimeNs at = snapshot.time - info_.window_begin_ns;
    if (at >= 0 && (marks.empty() || at > marks.back())) marks.push_back(at);
  }
  if (marks.size() < 3) {
    marks.clear();
    for (int quarter = 1; quarter <= 4; ++quarter) marks.push_back(out_.window_ns * quarter / 4);
  }
  if (marks.size() <= kMostMarks) {
    out_.marks = marks;
    return;
  }
  for (size_t i = 0; i < kMostMarks; ++i)
    out_.marks.push_back(marks[i * (marks.size() - 1) / (kMostMarks - 1)]);
}

uint32_t Summariser::site_of(model::StackId stack) {
  std::vector<FrameText> frames = tree_.texts_of(stack);
  size_t cut = frames_to_cut(frames);
  SiteKey key;
  bool named = true;
  if (cut < frames.size()) {
    key = {frames[cut].function, frames[cut].module, frames[cut].file, frames[cut].line};
    named = frames[cut].named;
  } else {
    key.function = "[no stack]";
    named = false;
  }
  auto [found, is_new] = site_ids_.try_emplace(key, static_cast<uint32_t>(sites_.size()));
  if (is_new) {
    sites_.emplace_back();
    sites_.back().key = key;
    sites_.back().named = named;
    sites_.back().growth.resize(out_.marks.size());
  }
  return found->second;
}

StackSums& Summariser::sums_of(model::StackId stack) {
  auto [found, is_new] = slot_of_stack_.try_emplace(stack.value, stacks_.size());
  if (is_new) {
    stacks_.push_back({stack, {}});
    stacks_.back().second.site = site_of(stack);
  }
  return stacks_[found->second].second;
}

void Summariser::add(const Event& event) {
  StackSums& stack = sums_of(event.stack);
  SiteSums& site = sites_[stack.site];
  allocated_.add(event);
  stack.allocated.add(event);
  site.allocated.add(event);
  by_thread_[event.thread].add(event);
  rate_weight_ += event.size / event.chance * static_cast<double>(event.rate);
  TimeNs window_end = info_.window_begin_ns + out_.window_ns;
  if (event.end > window_end) {
    live_.add(event);
    stack.live.add(event);
    site.live.add(event);
    if (window_end - event.begin >= out_.young_ns) {
      site.old.add(event);
      stack.held += event.size / event.chance;
    }
  } else {
    double bytes = event.size / event.chance;
    site.freed_bytes += bytes;
    site.lifetimes.emplace_back(event.end - event.begin, bytes);
  }
  for (size_t i = 0; i < out_.marks.size(); ++i) {
    TimeNs at = info_.window_begin_ns + out_.marks[i];
    if (event.begin <= at && event.end > at) site.growth[i] += event.size / event.chance;
  }
}

void Summariser::lay_timeline() {
  struct Step {
    TimeNs time;
    double bytes, objects;
  };
  std::vector<Step> steps;
  for (const Event& event : events_) {
    double objects = 1 / event.chance, bytes = event.size * objects;
    steps.push_back({event.begin - info_.window_begin_ns, bytes, objects});
    if (event.end != INT64_MAX)
      steps.push_back({event.end - info_.window_begin_ns, -bytes, -objects});
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return std::pair(a.time, -a.bytes) < std::pair(b.time, -b.bytes);
  });
  double bytes = 0, objects = 0;
  size_t next = 0;
  for (size_t point = 1; point <= kTimelinePoints; ++point) {
    TimeNs at = static_cast<TimeNs>(static_cast<double>(out_.window_ns) *
                                    static_cast<double>(point) / kTimelinePoints);
    for (; next < steps.size() && steps[next].time <= at; ++next) {
      bytes += steps[next].bytes;
      objects += steps[next].objects;
      if (bytes > out_.peak_bytes) {
        out_.peak_bytes = bytes;
        out_.peak_ns = steps[next].time;
      }
    }
    out_.timeline.push_back({at, std::max(bytes, 0.0), std::max(objects, 0.0)});
  }
}

int64_t weighted_quantile(std::vector<std::pair<int64_t, double>>& values, double quantile) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const auto& [value, weight] : values) sum += weight;
  double passed = 0;
  for (const auto& [value, weight] : values) {
    passed += weight;
    if (passed >= quantile * sum) return value;
  }
  return values.back().first;
}

// It grew from mark to mark, keeps most of what it takes, and enough of it is old.
bool Summariser::is_leak(const SiteSums& sums, const HeapSite& site) const {
  if (sums.old.samples < kFewestLeakSamples || site.freed_share > 1 - kLeakKeeps) return false;
  if (site.growth_bytes_per_s <= 0 || site.old.bytes - site.old.bytes_error <= 0) return false;
  size_t grew = 0;
  for (size_t i = 1; i < sums.growth.size(); ++i) grew += sums.growth[i] > sums.growth[i - 1];
  return sums.growth.size() > 1 && grew * 4 >= (sums.growth.size() - 1) * 3;
}

HeapSite Summariser::finish(SiteSums& sums) const {
  HeapSite site;
  site.function = sums.key.function;
  site.module = sums.key.module;
  site.file = sums.key.file;
  site.line = sums.key.line;
  site.named = sums.named;
  site.live = sums.live.amount();
  site.allocated = sums.allocated.amount();
  site.old = sums.old.amount();
  site.freed_share = sums.allocated.bytes > 0 ? sums.freed_bytes / sums.allocated.bytes : 0;
  site.median_lifetime_ns = weighted_quantile(sums.lifetimes, 0.5);
  site.p90_lifetime_ns = weighted_quantile(sums.lifetimes, 0.9);
  site.growth = sums.growth;
  if (sums.growth.size() > 1) {
    double seconds = static_cast<double>(out_.marks.back() - out_.marks.front()) / 1e9;
    if (seconds > 0) site.growth_bytes_per_s = (sums.growth.back() - sums.growth.front()) / seconds;
  }
  site.leaks = is_leak(sums, site);
  site.frames = tree_.texts_of(sums.heaviest);
  size_t cut = frames_to_cut(site.frames);
  site.frames.erase(site.frames.begin(), site.frames.begin() + static_cast<ptrdiff_t>(cut));
  return site;
}

void Summariser::finish_threads() {
  const run::Contents& run = reader_.contents();
  for (const auto& [id, sum] : by_thread_) {
    const model::Thread& thread = run.threads[id];
    out_.threads.push_back({thread.name, thread.tid, thread.pool, sum.amount()});
  }
  std::sort(out_.threads.begin(), out_.threads.end(), [](const HeapThread& a, const HeapThread& b) {
    return std::pair(-a.allocated.bytes, a.tid) < std::pair(-b.allocated.bytes, b.tid);
  });
  if (out_.threads.size() > kMostThreads) out_.threads.resize(kMostThreads);
}

Result<HeapSummary> Summariser::summarise(size_t most_sites) {
  if (!reader_.contents().has_heap) return out_;
  out_.present = true;
  out_.window_ns = std::max<int64_t>(0, info_.window_end_ns - info_.window_begin_ns);
  out_.young_ns = out_.window_ns / 4;
  if (reader_.contents().heap_imported) {
    read_sums();
  } else {
    if (auto done = read_events(); !done) return std::unexpected(done.error());
    choose_marks();
    for (const Event& event : events_) add(event);
    lay_timeline();
  }
  out_.live = live_.amount();
  out_.allocated = allocated_.amount();
  if (allocated_.bytes > 0) out_.mean_rate_bytes = rate_weight_ / allocated_.bytes;
  double whole = 0;
  for (const auto& [stack, sums] : stacks_) {
    // The stack that holds most is shown; if none holds any, the one that allocates most.
    std::pair weight(sums.held, sums.allocated.bytes);
    SiteSums& site = sites_[sums.site];
    if (weight > site.heaviest_weight) {
      site.heaviest_weight = weight;
      site.heaviest = stack;
    }
    out_.stacks.push_back({stack, sums.live.amount(), sums.allocated.amount()});
    bool complete = tree_.path_of(stack) != 0 && tree_.end_of(stack) == model::StackEnd::complete;
    whole += sums.weight();
    if (complete) out_.complete_share += sums.weight();
    if (!sites_[sums.site].named) out_.unresolved_share += sums.weight();
  }
  if (whole > 0) {
    out_.complete_share /= whole;
    out_.unresolved_share /= whole;
  }
  for (SiteSums& sums : sites_) out_.sites.push_back(finish(sums));
  // A site matters by what it holds or by what it goes through, whichever is more of its whole.
  auto matter = [&](const HeapSite& site) {
    double live = out_.live.bytes > 0 ? site.live.bytes / out_.live.bytes : 0;
    double all = out_.allocated.bytes > 0 ? site.allocated.bytes / out_.allocated.bytes : 0;
    return std::max(live, all);
  };
  std::stable_sort(out_.sites.begin(), out_.sites.end(),
                   [&](const HeapSite& a, const HeapSite& b) { return matter(a) > matter(b); });
  out_.sites_in_all = out_.sites.size();
  if (out_.sites.size() > most_sites) out_.sites.resize(most_sites);
  std::stable_sort(out_.sites.begin(), out_.sites.end(), [](const HeapSite& a, const HeapSite& b) {
    return std::pair(a.live.bytes, a.allocated.bytes) > std::pair(b.live.bytes, b.allocated.bytes);
  });
  finish_threads();
  return std::move(out_);
}

}  // namespace

Result<HeapSummary> summarise_heap(const run::Reader& reader, const CallTree& tree,
                                   const std::vector<bool>& threads, size_t most_sites) {
  return Summariser(reader, tree, threads).summarise(most_sites);
}

}  // namespace assay::analysis
