#include "formats/format.h"

#include "formats/gperftools/read_gperftools.h"
#include "formats/gperftools/write_gperftools_heap.h"

namespace assay::formats {
namespace {

Result<void> read_cpu(const ReadJob& job) {
  return read_gperftools_cpu(job.input, job.builder);
}

Result<void> read_heap(const ReadJob& job) {
  return read_gperftools_heap(job.input, job.builder);
}

Result<void> write_heap(const WriteJob& job) {
  write_gperftools_heap(job.run, job.rows, job.output);
  return {};
}

constexpr FormatSpec kFormats[] = {
    {
        .name = "gperftools-cpu",
        .place = 95,
        .binary = true,
        .sure = Sure::header,
        .detect = looks_like_gperftools_cpu,
        .read = read_cpu,
    },
    {
        .name = "gperftools-heap",
        .place = 100,
        .title = "gperftools",
        .help = "heap profile text, for google-pprof",
        .metrics = kHeapMetrics,
        .suffixes = {".heap"},
        .write = write_heap,
        .sure = Sure::header,
        .detect = looks_like_gperftools_heap,
        .read = read_heap,
    },
};

}  // namespace

std::span<const FormatSpec> gperftools_formats() {
  return kFormats;
}

}  // namespace assay::formats
