#include "view/run_export.h"

#include <nlohmann/json.hpp>

#include "formats/export/export.h"

namespace assay::view {
namespace {

std::string text_of(const Parameters& parameters, const std::string& name) {
  auto found = parameters.find(name);
  return found == parameters.end() ? std::string() : found->second;
}

Result<formats::ExportOptions> options_of(const Parameters& parameters) {
  formats::ExportOptions options;
  options.format = formats::find_format(text_of(parameters, "format"));
  if (options.format == nullptr || options.format->write == nullptr)
    return fail("parameter format names no format");
  if (std::string metric = text_of(parameters, "metric"); !metric.empty()) {
    options.metric = formats::parse_metric(metric);
    if (!options.metric) return fail("parameter metric names no metric");
  }
  auto selection = run::selection_among(parameters);
  if (!selection) return std::unexpected(selection.error());
  options.selection = std::move(*selection);
  options.inverted = text_of(parameters, "inverted") == "1";
  if (text_of(parameters, "by") == "thread") options.grouping = formats::Grouping::thread;
  options.icicle = true;
  return options;
}

}  // namespace

std::string formats_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const formats::FormatSpec* format : formats::written_formats()) {
    nlohmann::ordered_json metrics = nlohmann::ordered_json::array();
    for (int i = 0; i < formats::kMetricCount; ++i) {
      auto metric = static_cast<formats::Metric>(i);
      if (format->holds(metric)) metrics.push_back(std::string(formats::metric_name(metric)));
    }
    list.push_back({{"name", std::string(format->name)},
                    {"title", std::string(format->title)},
                    {"help", std::string(format->help)},
                    {"suffix", std::string(format->suffixes[0])},
                    {"metrics", std::move(metrics)}});
  }
  return list.dump();
}

Result<Exported> export_part(const run::Reader& reader, const Parameters& parameters) {
  auto options = options_of(parameters);
  if (!options) return std::unexpected(options.error());
  auto text = formats::export_to_text(reader, *options);
  if (!text) return std::unexpected(text.error());
  Exported exported;
  exported.file_name = "assay" + std::string(options->format->suffixes[0]);
  exported.bytes = std::move(*text);
  return exported;
}

}  // namespace assay::view
