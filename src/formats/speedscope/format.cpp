#include "formats/format.h"

#include "formats/export/export.h"
#include "formats/speedscope/read_speedscope.h"
#include "formats/speedscope/write_speedscope.h"

namespace assay::formats {
namespace {

Result<void> write(const WriteJob& job) {
  return write_speedscope(job.run, job.options.metric, job.output);
}

Result<void> read(const ReadJob& job) {
  return read_speedscope(job.input, job.options, job.builder);
}

constexpr FormatSpec kFormats[] = {{
    .name = "speedscope",
    .place = 40,
    .title = "speedscope",
    .help = "JSON for speedscope.app",
    .has_times = true,
    .suffixes = {".speedscope.json", ".json"},
    .write = write,
    .sure = Sure::header,
    .detect = looks_like_speedscope,
    .most_bytes = kMostSpeedscopeBytes,
    .asks_meaning = true,
    .read = read,
}};

}  // namespace

std::span<const FormatSpec> speedscope_formats() {
  return kFormats;
}

}  // namespace assay::formats
