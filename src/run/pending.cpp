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
