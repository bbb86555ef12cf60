// heap_columns(): what lives and what was allocated, by call path.
#include <cmath>
#include <map>

#include "analysis/heap/heap_summary.h"
#include "view/data/columns.h"
#include "view/queries.h"

namespace assay::view {
namespace {

struct NodeHeap {
  double live_bytes = 0, live_objects = 0, bytes = 0, objects = 0;
  uint64_t samples = 0;
};

uint64_t whole(double value) {
  return static_cast<uint64_t>(std::llround(std::max(0.0, value)));
}

}  // namespace

Result<std::string> heap_columns(RunIndex& run, const Selection& selection) {
  std::vector<bool> threads = selection.threads;
  if (threads.empty()) threads.assign(run.contents().threads.size(), true);
  auto heap = analysis::summarise_heap(selection.rows(run), run.tree(), threads, 1);
  if (!heap) return std::unexpected(heap.error());
  std::map<NodeIndex, NodeHeap> by_node;
  for (const analysis::HeapStack& stack : heap->stacks) {
    NodeHeap& sum = by_node[run.node_of(stack.stack)];
    sum.live_bytes += stack.live.bytes;
    sum.live_objects += stack.live.objects;
    sum.bytes += stack.allocated.bytes;
    sum.objects += stack.allocated.objects;
    sum.samples += stack.allocated.samples;
  }
  std::vector<int64_t> nodes;
  std::vector<uint64_t> live, live_objects, allocated, objects, samples;
  for (const auto& [node, sum] : by_node) {
    nodes.push_back(node);
    live.push_back(whole(sum.live_bytes));
    live_objects.push_back(whole(sum.live_objects));
    allocated.push_back(whole(sum.bytes));
    objects.push_back(whole(sum.objects));
    samples.push_back(sum.samples);
  }
  Columns table("heap");
  table.add_deltas("node", nodes);
  table.add("live", live);
  table.add("live_objects", live_objects);
  table.add("allocated", allocated);
  table.add("objects", objects);
  table.add("samples", samples);
  return table.finish();
}

}  // namespace assay::view
