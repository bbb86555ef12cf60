#include "formats/format.h"

#include "formats/export/export.h"
#include "formats/export/missing_metric.h"
#include "formats/pprof/read_pprof.h"
#include "formats/pprof/write_pprof.h"

namespace assay::formats {
namespace {

Result<void> write(const WriteJob& job) {
  Metric shown = job.metric;
  bool only_waits = !has_any(job.rows, Metric::cpu) && has_any(job.rows, Metric::off);
  if (!job.options.metric && only_waits) shown = Metric::off;
  return write_pprof(job.run, job.rows, shown, job.output);
}

Result<void> read(const ReadJob& job) {
  return read_pprof(job.input, job.builder, job.options);
}

constexpr FormatSpec kFormats[] = {{
    .name = "pprof",
    .place = 10,
    .title = "pprof",
    .help = "for go tool pprof and others",
    .metrics = kTimeMetrics | kHeapMetrics,
    .binary = true,
    .suffixes = {".pb.gz"},
    .write = write,
    .sure = Sure::fields,
    .detect = looks_like_pprof,
    .most_bytes = size_t{1} << 30,
    .asks_meaning = true,
    .read = read,
}};

}  // namespace

std::span<const FormatSpec> pprof_formats() {
  return kFormats;
}

}  // namespace assay::formats
