#include "formats/export/export.h"

#include <set>

#include "formats/export/export_checks.h"
#include "formats/export/output.h"
#include "formats/export/text.h"
#include "formats/export/totals.h"
#include "formats/tree/heading.h"

namespace assay::formats {

namespace {

// `open` gives the Output once it is known that there is something to write.
template <class Open>
Result<Output> write_export(const run::Reader& reader, const ExportOptions& options,
                            const Open& open) {
  if (options.format == nullptr || options.format->write == nullptr) {
    return fail_with_remedy("no format was chosen", "--format " + format_choice(written_formats()));
  }
  auto run = SelectedRun::make(reader, options.selection);
  if (!run) return std::unexpected(run.error());
  if (auto fits = check_format(reader.contents(), options); !fits)
    return std::unexpected(fits.error());
  auto rows = sum_up(**run);
  if (!rows) return std::unexpected(rows.error());
  if (auto any = check_any(**run, *rows, options); !any) return std::unexpected(any.error());
  Result<Output> output = open();
  if (!output) return output;
  Metric metric = options.metric.value_or(default_metric(reader.contents()));
  if (auto done = options.format->write({**run, *rows, options, metric, *output}); !done)
    return std::unexpected(done.error());
  if (auto done = output->commit(); !done) return std::unexpected(done.error());
  return output;
}

}  // namespace

Result<void> export_run(const run::Reader& reader, const ExportOptions& options,
                        const std::string& path) {
  auto written = write_export(reader, options, [&] { return Output::create(path); });
  if (!written) return std::unexpected(written.error());
  return {};
}

Result<std::string> export_to_text(const run::Reader& reader, const ExportOptions& options) {
  auto written =
      write_export(reader, options, [] { return Result<Output>(Output::to_memory()); });
  if (!written) return std::unexpected(written.error());
  return written->text();
}

Result<std::vector<std::string>> export_by_process(const run::Reader& reader,
                                                   const ExportOptions& options,
                                                   const std::string& directory,
                                                   const std::string& suffix) {
  auto all = SelectedRun::make(reader, options.selection);
  if (!all) return std::unexpected(all.error());
  auto rows = sum_up(**all);
  if (!rows) return std::unexpected(rows.error());
  std::set<model::ProcessId> wanted;
  Metric shown = options.metric.value_or(default_metric(reader.contents()));
  if (shown == Metric::cpu && !shows_one(options)) shown = Metric::wall;
  for (const TotalRow& row : *rows) {
    if (row.of(shown) > 0) {
      wanted.insert((*all)->thread(row.thread).process);
    }
  }
  std::vector<std::string> paths;
  std::set<std::string> names;
  for (const model::Process& process : reader.contents().processes) {
    model::ProcessId id = process.id;
    std::string name =
        file_name_text(process.role.empty() ? model::process_name(process) : process.role);
    for (int64_t more : {int64_t{process.pid}, int64_t{id.value}}) {
      if (!names.contains(name)) break;
      name += fmt::format("-{}", more);
    }
    names.insert(name);  // taken, whether it has a file of this metric or not
    if (!wanted.contains(id)) continue;
    ExportOptions one = options;
    one.selection.process_ids = {id};
    one.title = fmt::format(
        "{}: {}", (*all)->process_label(id),
        title_of(reader.contents(), options.metric.value_or(default_metric(reader.contents()))));
    paths.push_back(fmt::format("{}/{}{}", directory, name, suffix));
    if (auto done = export_run(reader, one, paths.back()); !done) {
      return std::unexpected(done.error());
    }
  }
  return paths;
}

}  // namespace assay::formats
