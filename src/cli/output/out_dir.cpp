#include "cli/output/out_dir.h"

#include "analysis/analyse.h"
#include "formats/export/export.h"
#include "formats/export/output.h"
#include "report/json/json.h"
#include "report/text/text.h"

namespace assay::cli {

Result<std::vector<std::string>> write_out_dir(const run::Reader& reader,
                                               const std::string& run_path,
                                               const std::string& directory) {
  std::vector<std::string> all;
  for (const formats::FormatSpec* format :
       {formats::find_format("folded"), formats::find_format("svg")}) {
    for (formats::Metric metric : {formats::Metric::cpu, formats::Metric::off}) {
      formats::ExportOptions options;
      options.format = format;
      options.metric = metric;
      std::string suffix = metric == formats::Metric::cpu ? ".oncpu" : ".offcpu";
      suffix += format->suffixes[0];
      auto paths = formats::export_by_process(reader, options, directory, suffix);
      if (!paths) return std::unexpected(paths.error());
      all.insert(all.end(), paths->begin(), paths->end());
    }
  }
  analysis::Options options;
  options.run_path = run_path;
  auto report = analysis::analyse(reader, options);
  if (!report) return std::unexpected(report.error());
  all.push_back(directory + "/report.txt");
  if (auto done = formats::write_whole(all.back(), report::render_text(*report, {})); !done) {
    return std::unexpected(done.error());
  }
  all.push_back(directory + "/report.json");
  if (auto done = formats::write_whole(all.back(), report::render_json(*report) + "\n"); !done) {
    return std::unexpected(done.error());
  }
  return all;
}

}  // namespace assay::cli
