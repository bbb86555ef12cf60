#include "inject/inproc/write/write_gperftools.h"

namespace assay::inproc {
namespace {

void word(ByteBuffer& out, uintptr_t value) {
  out.append(&value, sizeof value);
}

void heap_counts(ByteBuffer& out, const int64_t (&values)[kMaxValues]) {
  out.print("%6ld: %8ld [%6ld: %8ld] @", values[2], values[3], values[0], values[1]);
}

}  // namespace

bool write_gperftools_cpu(const CpuResult& result, ByteBuffer& out) {
  // Header: count 0, three words more, version 0, the period in microseconds, padding.
  for (uintptr_t value : {uintptr_t{0}, uintptr_t{3}, uintptr_t{0},
                          static_cast<uintptr_t>(result.period_ns / 1000), uintptr_t{0}})
    word(out, value);
  SampleRow row;
  for (uint32_t i = 0; i < result.table->rows(); ++i) {
    if (!result.table->row(i, row) || row.frames == 0) continue;
    word(out, static_cast<uintptr_t>(row.count));
    word(out, row.frames);
    out.append(row.pcs, row.frames * sizeof(uintptr_t));
  }
  for (uintptr_t value : {uintptr_t{0}, uintptr_t{1}, uintptr_t{0}}) word(out, value);
  return read_whole_file("/proc/self/maps", out) && !out.failed();
}

bool write_gperftools_heap(const Profile& heap, ByteBuffer& out) {
  int64_t totals[kMaxValues] = {};
  for (size_t i = 0; i < heap.count; ++i)
    for (size_t k = 0; k < kMaxValues; ++k) totals[k] += heap.samples[i].values[k];
  out.append("heap profile: ");
  heap_counts(out, totals);
  out.append(" heapprofile\n");
  for (size_t i = 0; i < heap.count; ++i) {
    heap_counts(out, heap.samples[i].values);
    for (uint32_t k = 0; k < heap.samples[i].frames; ++k)
      out.print(" 0x%lx", heap.samples[i].pcs[k]);
    out.append("\n");
  }
  out.append("\nMAPPED_LIBRARIES:\n");
  return read_whole_file("/proc/self/maps", out) && !out.failed();
}

bool write_gperftools_contention(const Profile& waits, ByteBuffer& out) {
  out.append(
      "--- contention:\ncycles/second = 1000000000\nsampling period = 1\nms since reset = 0\n");
  out.append("discarded samples = 0\n");
  for (size_t i = 0; i < waits.count; ++i) {
    const ProfileSample& sample = waits.samples[i];
    out.print("%ld %ld @", sample.values[1], sample.values[0]);
    for (uint32_t k = 0; k < sample.frames; ++k) out.print(" 0x%lx", sample.pcs[k]);
    out.append("\n");
  }
  return read_whole_file("/proc/self/maps", out) && !out.failed();
}

}  // namespace assay::inproc
