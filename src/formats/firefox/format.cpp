#include "formats/format.h"

#include "formats/firefox/write_firefox.h"

namespace assay::formats {
namespace {

Result<void> write(const WriteJob& job) {
  return write_firefox(job.run, job.output);
}

constexpr FormatSpec kFormats[] = {{
    .name = "firefox",
    .place = 50,
    .title = "Firefox Profiler",
    .help = "JSON for profiler.firefox.com",
    .metrics = metric_set({Metric::cpu}),
    .has_times = true,
    .refusal = "firefox holds samples of CPU time, and waits as markers beside them",
    .remedy = "leave --metric out, or --format speedscope",
    .suffixes = {".firefox.json"},
    .write = write,
}};

}  // namespace

std::span<const FormatSpec> firefox_formats() {
  return kFormats;
}

}  // namespace assay::formats
