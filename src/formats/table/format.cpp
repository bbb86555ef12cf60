#include "formats/format.h"

#include "formats/table/write_by_second.h"
#include "formats/table/write_table.h"

namespace assay::formats {
namespace {

constexpr MetricSet kOfTables = metric_set({Metric::cpu, Metric::off, Metric::wall});
constexpr std::string_view kRefusal = "a table holds CPU and off-CPU time";
constexpr std::string_view kRemedy = "--metric cpu, off or wall";

Result<void> write_seconds(const WriteJob& job) {
  return write_by_second(job.run, job.metric, job.output);
}

template <char separator>
Result<void> write_rows(const WriteJob& job) {
  write_table(job.run, job.rows, job.metric, separator, job.output);
  return {};
}

constexpr FormatSpec kFormats[] = {
    {
        .name = "collapsed-by-second",
        .place = 70,
        .title = "Collapsed by second",
        .help = "stacks of each second, for heat maps",
        .has_times = true,
        .one_metric = true,
        .suffixes = {".by-second.tsv"},
        .write = write_seconds,
    },
    {
        .name = "csv",
        .place = 80,
        .title = "CSV",
        .help = "one row per function, for spreadsheets",
        .metrics = kOfTables,
        .refusal = kRefusal,
        .remedy = kRemedy,
        .suffixes = {".csv"},
        .write = write_rows<','>,
    },
    {
        .name = "tsv",
        .place = 90,
        .title = "TSV",
        .help = "the same with tabs",
        .metrics = kOfTables,
        .refusal = kRefusal,
        .remedy = kRemedy,
        .suffixes = {".tsv"},
        .write = write_rows<'\t'>,
    },
};

}  // namespace

std::span<const FormatSpec> table_formats() {
  return kFormats;
}

}  // namespace assay::formats
