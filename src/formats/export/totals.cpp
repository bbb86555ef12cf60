#include "formats/export/totals.h"

#include <cmath>
#include <map>

namespace assay::formats {
namespace {

// Open addressing: up to millions of samples pass through it, and node-based maps would take most
// of an export's time.
class RowTable {
 public:
  TotalRow& at(model::ThreadId thread, model::StackId stack, uint32_t kind) {
    if ((rows_.size() + 1) * 2 > slots_.size()) grow();
    for (size_t i = home(thread.value, stack.value, kind);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == 0) {
        rows_.emplace_back();
        rows_.back().thread = thread;
        rows_.back().stack = stack;
        kinds_.push_back(kind);
        slots_[i] = static_cast<uint32_t>(rows_.size());
        return rows_.back();
      }
      TotalRow& row = rows_[slots_[i] - 1];
      if (row.stack == stack && row.thread == thread && kinds_[slots_[i] - 1] == kind) return row;
    }
  }
  std::vector<TotalRow> take() { return std::move(rows_); }

 private:
  size_t home(uint32_t thread, uint32_t stack, uint32_t kind) const {
    uint64_t key = (uint64_t{stack} << 32 | thread) ^ uint64_t { kind } << 27;
    key = (key ^ key >> 29) * 0x9E3779B97F4A7C15ull;
    return (key ^ key >> 32) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(slots_.empty() ? 1 << 12 : slots_.size() * 4, 0);
    for (size_t r = 0; r < rows_.size(); ++r) {
      size_t i = home(rows_[r].thread.value, rows_[r].stack.value, kinds_[r]);
      while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = static_cast<uint32_t>(r + 1);
    }
  }
  std::vector<TotalRow> rows_;
  std::vector<uint32_t> kinds_;
  std::vector<uint32_t> slots_;  // 0: free, else row + 1
};

// Estimates are rounded once, when they are whole.
struct HeapSums {
  double inuse_bytes = 0, inuse_objects = 0, alloc_bytes = 0, alloc_objects = 0;
};

// Of another profiler's sums: whole numbers, which stay what they are.
Result<void> take_heap_sums(SelectedRun& run, std::vector<TotalRow>& rows) {
  RowTable table;
  auto done = run.for_each_heap_sum([&](const model::HeapSum& sum) {
    TotalRow& row = table.at(sum.thread, sum.stack, 0);
    row.heap = true;
    row.inuse_bytes += sum.live_bytes;
    row.inuse_objects += sum.live_objects;
    row.alloc_bytes += sum.bytes;
    row.alloc_objects += sum.objects;
  });
  for (const TotalRow& row : table.take()) rows.push_back(row);
  return done;
}

Result<void> sum_up_heap(SelectedRun& run, std::vector<TotalRow>& rows) {
  std::map<std::pair<uint32_t, uint32_t>, HeapSums> sums;
  std::vector<std::pair<uint32_t, uint32_t>> order;
  auto done = run.for_each_alloc([&](const SelectedAlloc& selected) {
    std::pair key{selected.alloc.stack.value, selected.alloc.thread.value};
    auto [found, is_new] = sums.try_emplace(key);
    if (is_new) order.push_back(key);
    double objects = selected.alloc.weight();
    double bytes = objects * static_cast<double>(selected.alloc.size_bytes);
    found->second.alloc_bytes += bytes;
    found->second.alloc_objects += objects;
    if (!selected.in_use) return;
    found->second.inuse_bytes += bytes;
    found->second.inuse_objects += objects;
  });
  if (!done) return done;
  for (const auto& key : order) {
    const HeapSums& sum = sums[key];
    TotalRow row;
    row.stack = {key.first};
    row.thread = {key.second};
    row.heap = true;
    row.inuse_bytes = std::llround(sum.inuse_bytes);
    row.inuse_objects = std::llround(sum.inuse_objects);
    row.alloc_bytes = std::llround(sum.alloc_bytes);
    row.alloc_objects = std::llround(sum.alloc_objects);
    rows.push_back(row);
  }
  return {};
}

}  // namespace

int64_t TotalRow::of(Metric metric) const {
  switch (metric) {
    case Metric::cpu:
      return cpu_ns;
    case Metric::off:
      return off_ns;
    case Metric::wall:
      return cpu_ns + off_ns + runqueue_ns;
    case Metric::lock:
      return kind == analysis::BlockKind::lock ? off_ns : 0;
    case Metric::runqueue:
      return runqueue_ns;
    case Metric::samples:
      return samples;
    case Metric::waits:
      return waits;
    case Metric::inuse_space:
      return inuse_bytes;
    case Metric::inuse_objects:
      return inuse_objects;
    case Metric::alloc_space:
      return alloc_bytes;
    case Metric::alloc_objects:
      return alloc_objects;
  }
  return 0;
}

Result<std::vector<TotalRow>> sum_up(SelectedRun& run) {
  RowTable table;
  auto done = run.for_each_sample([&](const model::Sample& sample) {
    TotalRow& row = table.at(sample.thread, sample.stack, 0);
    ++row.samples;
    row.cpu_ns += sample.weight_ns;
  });
  if (!done) return std::unexpected(done.error());
  done = run.for_each_wait([&](const SelectedWait& selected) {
    uint32_t kind = 1 + static_cast<uint32_t>(selected.kind);
    TotalRow& row = table.at(selected.wait.thread, selected.wait.stack, kind);
    row.waiting = true;
    row.kind = selected.kind;
    row.waits += selected.waits();
    row.off_ns += selected.blocked_ns;
    row.runqueue_ns += selected.runqueue_ns;
  });
  if (!done) return std::unexpected(done.error());
  std::vector<TotalRow> rows = table.take();
  if (done = sum_up_heap(run, rows); !done) return std::unexpected(done.error());
  if (done = take_heap_sums(run, rows); !done) return std::unexpected(done.error());
  return rows;
}

}  // namespace assay::formats
