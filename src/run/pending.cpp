#include "run/pending.h"

namespace assay::run {
namespace {

// A burst may need more; between flushes of a busy capture this much is kept for reuse.
constexpr size_t kKeptRows = size_t{1} << 19;

template <class T>
void empty(std::vector<T>& rows) {
  rows.clear();
  if (rows.capacity() > kKeptRows) rows.shrink_to_fit();
}

}  // namespace

int64_t Pending::bytes_at_most() const {
  // Rows of the tables that grow, as they are in memory: a file holds them packed.
  size_t bytes = frames.size() * sizeof(frames[0]) + stacks.size() * sizeof(stacks[0]) +
                 samples.size() * sizeof(model::Sample) + waits.size() * sizeof(model::Wait) +
                 heap_allocs.size() * sizeof(model::HeapAlloc) +
                 heap_sums.size() * sizeof(model::HeapSum) +
                 mappings.size() * sizeof(TimedMapping) + points.size() * sizeof(model::Point);
  for (const auto& [frame, names] : locations) {
    for (const model::Location& at : names) {
      bytes += at.function.size() + at.file.size() + sizeof(model::Location);
    }
  }
  for (const SourceLine& line : source_lines) bytes += line.text.size() + line.file.size();
  return static_cast<int64_t>(bytes);
}

void Pending::clear() {
  info.reset();
  empty(facts);
  empty(notes);
  empty(processes);
  empty(threads);
  empty(modules);
  empty(frames);
  empty(stacks);
  empty(mappings);
  empty(locations);
  empty(samples);
  empty(waits);
  empty(heap_allocs);
  empty(heap_frees);
  empty(heap_snapshots);
  empty(heap_sums);
  open_waits.reset();
  empty(series);
  empty(points);
  empty(losses);
  empty(data_names);
  empty(source_lines);
}

}  // namespace assay::run
