// cell_columns() and timeline_columns(): time by bin, thread, state and node.
#include <array>

#include "view/data/bins.h"
#include "view/data/cell_map.h"
#include "view/data/columns.h"
#include "view/queries.h"
#include "view/data/time_walk.h"

namespace assay::view {
namespace {

// bin 16 bits, thread 17, state 5, node 26: what no run of a size we can show exceeds; what does is
// cut to the largest value, which keeps sums right.
constexpr int kNodeBits = 26, kStateBits = 5, kThreadBits = 17;

uint64_t cut(uint64_t value, int bits) {
  return std::min(value, (uint64_t{1} << bits) - 1);
}

uint64_t key_of(uint32_t bin, uint32_t thread, ThreadState state, NodeIndex node) {
  uint64_t key = bin;
  key = key << kThreadBits | cut(thread, kThreadBits);
  key = key << kStateBits | state;
  return key << kNodeBits | cut(node, kNodeBits);
}

// Sums by state and node, an array each: what the flame graph of a whole run is made of touches
// most of its nodes, and an array needs neither hashing nor sorting.
class NodeSums {
 public:
  explicit NodeSums(size_t nodes) : nodes_(nodes) {}

  void add(ThreadState state, NodeIndex node, int64_t ns, uint64_t count) {
    std::vector<Sum>& sums = by_state_[state];
    if (sums.empty()) sums.resize(nodes_);
    sums[node].ns += ns;
    sums[node].count += count;
  }
  // By key, ascending.
  std::vector<Cell> rows() const {
    std::vector<Cell> rows;
    for (size_t state = 0; state < by_state_.size(); ++state) {
      for (size_t node = 0; node < by_state_[state].size(); ++node) {
        const Sum& sum = by_state_[state][node];
        if (sum.ns == 0 && sum.count == 0) continue;
        uint64_t key = key_of(0, 0, static_cast<ThreadState>(state), static_cast<NodeIndex>(node));
        rows.push_back({key, sum.ns, sum.count});
      }
    }
    return rows;
  }

 private:
  struct Sum {
    int64_t ns = 0;
    uint64_t count = 0;
  };
  size_t nodes_;
  std::array<std::vector<Sum>, 1 << kStateBits> by_state_;
};

std::string columns_of(const std::vector<Cell>& rows, std::string_view kind,
                       const Selection& selection, const RunIndex& run, const CellShape& shape) {
  std::vector<int64_t> bins, nodes;
  std::vector<uint64_t> threads, states, ns, counts;
  for (auto* column : {&bins, &nodes}) column->reserve(rows.size());
  for (auto* column : {&threads, &states, &ns, &counts}) column->reserve(rows.size());
  for (const Cell& row : rows) {
    uint64_t key = row.key;
    nodes.push_back(static_cast<int64_t>(key & ((uint64_t{1} << kNodeBits) - 1)));
    states.push_back(key >> kNodeBits & ((1u << kStateBits) - 1));
    threads.push_back(key >> (kNodeBits + kStateBits) & ((1u << kThreadBits) - 1));
    bins.push_back(static_cast<int64_t>(key >> (kNodeBits + kStateBits + kThreadBits)));
    ns.push_back(static_cast<uint64_t>(std::max<int64_t>(0, row.ns)));
    counts.push_back(row.count);
  }
  Columns table(kind);
  table.scalar("from", selection.begin_ns - run.begin_ns());
  table.scalar("to", selection.end_ns - run.begin_ns());
  table.scalar("bins", shape.bins);
  table.scalar("by_thread", shape.by_thread);
  if (shape.bins > 1) table.add_deltas("bin", bins);
  if (shape.by_thread) table.add("thread", threads);
  table.add("state", states);
  table.add("ns", ns);
  if (kind == "cells") {
    table.add_deltas("node", nodes);
    table.add("count", counts);
  }
  return table.finish();
}

// Where waits that began before the selection count as waits: in it, or in what lies before it.
enum class Carried { counted, counted_before };

// add(bin, thread, state, node, ns, count) of every sample and every piece of a wait, by reading
// the rows.
template <class Add>
Result<void> read_cells(RunIndex& run, const Selection& selection, uint32_t bins, Carried carried,
                        const Add& add) {
  Bins parts(selection.begin_ns, selection.end_ns, bins);
  auto status =
      selection.rows(run).for_each_sample(selection.range(), [&](const model::Sample& sample) {
        if (sample.thread.value >= run.contents().threads.size()) return;
        NodeIndex node = run.node_of(sample.stack);
        if (!selection.has_thread(sample.thread) || !selection.has_node(node)) return;
        add(parts.of(sample.time), sample.thread, run.running_state(sample.stack), node,
            sample.weight_ns, 1);
      });
  if (!status) return status;
  return walk_waits(run, selection, [&](const Piece& piece) {
    if (piece.state == kRunning || !selection.has_node(piece.node)) return;
    // In the bin where it begins; the run-queue part of a wait is no wait of its own.
    uint64_t count = piece.begin_ns == piece.wait_begin_ns ? 1 : 0;
    if (carried == Carried::counted_before && piece.wait &&
        piece.wait->start < selection.begin_ns) {
      count = 0;
    }
    parts.cut(piece.begin_ns, piece.end_ns, [&](uint32_t bin, int64_t ns) {
      add(bin, piece.thread, piece.state, piece.node, ns, count);
      count = 0;
    });
  });
}

// The same in one bin, adding up whole slices where the run has sums of them: only what lies
// between them and the ends of the range is read.
template <class Add>
Result<void> sum_cells(RunIndex& run, const Selection& selection, const Add& add) {
  const SliceSums* sums = run.sums();
  Selection edge = selection;
  if (sums == nullptr) return read_cells(run, edge, 1, Carried::counted, add);
  bool from_begin = selection.begin_ns <= sums->border(0);
  uint32_t first = from_begin ? 0 : sums->slice_of(selection.begin_ns) + 1;
  uint32_t last = selection.end_ns >= sums->border(sums->count())
                      ? sums->count()
                      : sums->slice_of(selection.end_ns);
  if (first >= last) return read_cells(run, edge, 1, Carried::counted, add);
  if (!from_begin) {
    edge.end_ns = sums->border(first);
    if (auto read = read_cells(run, edge, 1, Carried::counted, add); !read) return read;
  }
  sums->for_each(
      first, last, [&](model::ThreadId thread) { return selection.has_thread(thread); },
      [&](uint32_t, model::ThreadId thread, ThreadState state, NodeIndex node, int64_t ns,
          uint64_t count) {
        if (selection.has_node(node)) add(0, thread, state, node, ns, count);
      });
  edge.begin_ns = sums->border(last);
  edge.end_ns = selection.end_ns;
  if (edge.begin_ns >= edge.end_ns) return {};
  return read_cells(run, edge, 1, Carried::counted_before, add);
}

}  // namespace

Result<std::string> cell_columns(RunIndex& run, const Selection& selection,
                                 const CellShape& shape) {
  if (shape.bins == 1 && !shape.by_thread && shape.most_rows == SIZE_MAX) {
    NodeSums sums(run.node_count());
    auto status = sum_cells(run, selection,
                            [&](uint32_t, model::ThreadId, ThreadState state, NodeIndex node,
                                int64_t ns, uint64_t count) { sums.add(state, node, ns, count); });
    if (!status) return std::unexpected(status.error());
    return columns_of(sums.rows(), "cells", selection, run, shape);
  }
  CellMap map;
  std::atomic<bool> full = false;  // the rest need not be read
  Selection limited = selection;
  if (shape.most_rows != SIZE_MAX) limited.stop = &full;
  auto add = [&](uint32_t bin, model::ThreadId thread, ThreadState state, NodeIndex node,
                 int64_t ns, uint64_t count) {
    if (map.size() > shape.most_rows) full = true;
    if (!full) map.add(key_of(bin, shape.by_thread ? thread.value : 0, state, node), ns, count);
  };
  auto status = shape.bins == 1 ? sum_cells(run, limited, add)
                                : read_cells(run, limited, shape.bins, Carried::counted, add);
  if (full) return std::string();
  if (!status) return std::unexpected(status.error());
  return columns_of(map.sorted(), "cells", selection, run, shape);
}

namespace {

using Moments = std::function<void(uint32_t bin, model::ThreadId, ThreadState, int64_t ns)>;

Result<void> read_timeline(RunIndex& run, const Selection& selection, uint32_t bins,
                           const Moments& add) {
  Bins parts(selection.begin_ns, selection.end_ns, bins);
  bool by_samples = !run.has_waits() || !selection.nodes.empty();
  if (by_samples) {
    auto status =
        selection.rows(run).for_each_sample(selection.range(), [&](const model::Sample& sample) {
          if (sample.thread.value >= run.contents().threads.size()) return;
          if (!selection.has_thread(sample.thread) ||
              !selection.has_node(run.node_of(sample.stack))) {
            return;
          }
          add(parts.of(sample.time), sample.thread, kRunning, sample.weight_ns);
        });
    if (!status) return status;
  }
  return walk_waits(run, selection, [&](const Piece& piece) {
    if (!selection.has_node(piece.node)) return;
    parts.cut(piece.begin_ns, piece.end_ns,
              [&](uint32_t bin, int64_t ns) { add(bin, piece.thread, piece.state, ns); });
  });
}

bool is_whole(const RunIndex& run, const Selection& selection) {
  return selection.begin_ns <= run.begin_ns() && selection.end_ns >= run.end_ns();
}

// From the sums of a large run, where they have these bins; false where they do not.
bool sum_timeline(const RunIndex& run, const Selection& selection, uint32_t bins,
                  const Moments& add) {
  const SliceSums* moments = run.moments();
  if (moments == nullptr || moments->width() != 1 || moments->count() % bins != 0 ||
      !is_whole(run, selection) || !selection.nodes.empty()) {
    return false;
  }
  uint32_t each = moments->count() / bins;
  moments->for_each(
      0, moments->count(), [&](model::ThreadId thread) { return selection.has_thread(thread); },
      [&](uint32_t slice, model::ThreadId thread, ThreadState state, NodeIndex, int64_t ns,
          uint64_t) { add(slice / each, thread, state, ns); });
  return true;
}

// Of chosen functions in a large run: by slice, since reading all of it takes too long to look at.
bool sum_found(const RunIndex& run, const Selection& selection, const Moments& add) {
  const SliceSums* sums = run.sums();
  if (sums == nullptr || selection.nodes.empty() || !is_whole(run, selection)) return false;
  sums->for_each(
      0, sums->count(), [&](model::ThreadId thread) { return selection.has_thread(thread); },
      [&](uint32_t slice, model::ThreadId thread, ThreadState state, NodeIndex node, int64_t ns,
          uint64_t) {
        if (selection.has_node(node)) add(slice, thread, state <= kKernel ? kRunning : state, ns);
      });
  return true;
}

}  // namespace

Result<std::string> timeline_columns(RunIndex& run, const Selection& selection,
                                     const CellShape& wanted) {
  CellMap map;
  CellShape shape = wanted;
  Moments add = [&](uint32_t bin, model::ThreadId thread, ThreadState state, int64_t ns) {
    map.add(key_of(bin, shape.by_thread ? thread.value : 0, state, 0), ns, 0);
  };
  if (sum_found(run, selection, add)) {
    shape.bins = run.sums()->count();
  } else if (!sum_timeline(run, selection, shape.bins, add)) {
    auto status = read_timeline(run, selection, shape.bins, add);
    if (!status) return std::unexpected(status.error());
  }
  return columns_of(map.sorted(), "timeline", selection, run, shape);
}

}  // namespace assay::view
