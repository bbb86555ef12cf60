// order_columns(): one thread's time, interval after interval.
#include <algorithm>

#include "view/data/bins.h"
#include "view/data/cell_map.h"
#include "view/data/columns.h"
#include "view/queries.h"
#include "view/data/time_walk.h"

namespace assay::view {
namespace {

struct Interval {
  TimeNs begin_ns = 0;
  TimeNs end_ns = 0;
  ThreadState state = kRunning;
  NodeIndex node = 0;
};

struct Shot {
  TimeNs time_ns = 0;
  ThreadState state = kUser;
  NodeIndex node = 0;
  int64_t weight_ns = 0;
};

// A gap between waits belongs to the samples taken in it; the border between two samples lies
// half-way.
void fill_gap(const Interval& gap, std::span<const Shot> shots, std::vector<Interval>& out) {
  auto first = std::lower_bound(shots.begin(), shots.end(), gap.begin_ns,
                                [](const Shot& s, TimeNs t) { return s.time_ns < t; });
  TimeNs at = gap.begin_ns;
  for (auto shot = first; shot != shots.end() && shot->time_ns < gap.end_ns; ++shot) {
    auto next = shot + 1;
    TimeNs until = next != shots.end() && next->time_ns < gap.end_ns
                       ? shot->time_ns + (next->time_ns - shot->time_ns) / 2
                       : gap.end_ns;
    if (until > at) out.push_back({at, until, shot->state, shot->node});
    at = std::max(at, until);
  }
  if (at < gap.end_ns) out.push_back({at, gap.end_ns, kRunning, 0});
}

// Where there are no waits a sample stands for the time before it.
void place_samples(std::span<const Shot> shots, TimeNs begin_ns, std::vector<Interval>& out) {
  TimeNs at = begin_ns;
  for (const Shot& shot : shots) {
    TimeNs from = std::max(at, shot.time_ns - std::max<int64_t>(0, shot.weight_ns));
    if (shot.time_ns > from) out.push_back({from, shot.time_ns, shot.state, shot.node});
    at = std::max(at, shot.time_ns);
  }
}

std::vector<Interval> coarser(const std::vector<Interval>& intervals, const Selection& selection,
                              uint32_t bins) {
  CellMap map;
  Bins parts(selection.begin_ns, selection.end_ns, bins);
  for (const Interval& interval : intervals) {
    parts.cut(interval.begin_ns, interval.end_ns, [&](uint32_t bin, int64_t ns) {
      map.add(uint64_t{bin} << 40 | uint64_t{interval.state} << 32 | interval.node, ns, 0);
    });
  }
  std::vector<Interval> result;
  int64_t best = 0;
  for (const Cell& cell : map.sorted()) {
    auto bin = static_cast<uint32_t>(cell.key >> 40);
    TimeNs begin = parts.border(bin);
    Interval interval{begin, parts.border(bin + 1), static_cast<ThreadState>(cell.key >> 32 & 0xff),
                      static_cast<NodeIndex>(cell.key)};
    if (result.empty() || result.back().begin_ns != begin) {
      result.push_back(interval);
      best = cell.ns;
    } else if (cell.ns > best) {
      result.back() = interval;
      best = cell.ns;
    }
  }
  return result;
}

}  // namespace

Result<std::string> order_columns(RunIndex& run, const Selection& selection, model::ThreadId thread,
                                  size_t most_rows) {
  Selection one = selection;
  one.threads.assign(run.contents().threads.size(), false);
  one.threads[thread.value] = true;
  one.nodes.clear();
  std::vector<Shot> shots;
  auto status = one.rows(run).for_each_sample(one.range(), [&](const model::Sample& sample) {
    if (sample.thread != thread) return;
    shots.push_back({sample.time, run.running_state(sample.stack), run.node_of(sample.stack),
                     sample.weight_ns});
  });
  if (!status) return std::unexpected(status.error());
  std::stable_sort(shots.begin(), shots.end(),
                   [](const Shot& a, const Shot& b) { return a.time_ns < b.time_ns; });
  std::vector<Interval> intervals;
  if (run.has_waits()) {
    status = walk_waits(run, one, [&](const Piece& piece) {
      Interval interval{piece.begin_ns, piece.end_ns, piece.state, piece.node};
      if (piece.state == kRunning) {
        fill_gap(interval, shots, intervals);
      } else {
        intervals.push_back(interval);
      }
    });
    if (!status) return std::unexpected(status.error());
  } else {
    place_samples(shots, one.begin_ns, intervals);
  }
  bool exact = intervals.size() <= most_rows;
  if (!exact) {
    intervals = coarser(intervals, one, static_cast<uint32_t>(std::max<size_t>(1, most_rows / 4)));
  }
  std::vector<int64_t> begins;
  std::vector<uint64_t> lengths;
  std::vector<uint32_t> states, nodes;
  for (const Interval& interval : intervals) {
    begins.push_back(interval.begin_ns - run.begin_ns());
    lengths.push_back(static_cast<uint64_t>(interval.end_ns - interval.begin_ns));
    states.push_back(interval.state);
    nodes.push_back(interval.node);
  }
  Columns table("order");
  table.scalar("exact", exact);
  table.add_deltas("begin", begins);
  table.add("ns", lengths);
  table.add("state", states);
  table.add("node", nodes);
  return table.finish();
}

}  // namespace assay::view
