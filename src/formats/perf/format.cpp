#include "formats/format.h"

#include "formats/perf/perf_data.h"
#include "formats/perf/read_perf_script.h"
#include "formats/perf/write_perf_script.h"

namespace assay::formats {
namespace {

Result<void> read_data(const ReadJob& job) {
  auto data = PerfData::open(job.input);
  if (!data) return std::unexpected(data.error());
  if (!job.take_perf_data) return fail("{}: perf.data cannot be read here", job.input.name());
  return job.take_perf_data(*data);
}

Result<void> read_script(const ReadJob& job) {
  return read_perf_script(job.input, job.options, job.builder);
}

Result<void> write_script(const WriteJob& job) {
  return write_perf_script(job.run, job.metric, job.output);
}

constexpr FormatSpec kFormats[] = {
    {
        .name = "perf.data",
        .place = 5,
        .has_times = true,
        .binary = true,
        .sure = Sure::magic,
        .detect = looks_like_perf_data,
        .read = read_data,
    },
    {
        .name = "perf-script",
        .place = 60,
        .title = "perf script",
        .help = "text, as perf script prints it",
        .has_times = true,
        .one_metric = true,
        .suffixes = {".perf.txt"},
        .write = write_script,
        .sure = Sure::layout,
        .detect =
            [](std::string_view head) { return is_text(head) && looks_like_perf_script(head); },
        .read = read_script,
    },
};

}  // namespace

std::span<const FormatSpec> perf_formats() {
  return kFormats;
}

}  // namespace assay::formats
