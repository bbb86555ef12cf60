#include "formats/format.h"

#include "formats/export/export.h"
#include "formats/svg/write_svg.h"
#include "formats/tree/heading.h"
#include "formats/tree/tree_export.h"

namespace assay::formats {
namespace {

Result<void> write(const WriteJob& job) {
  auto tree = make_tree(job);
  if (!tree) return std::unexpected(tree.error());
  SvgOptions svg;
  svg.title = job.options.title;
  if (svg.title.empty()) {
    svg.title = fmt::format("{}{}", title_of(job.run.contents(), job.metric),
                            job.options.base != nullptr ? ", compared"
                            : job.options.inverted      ? ", by leaf function"
                                                        : "");
  }
  svg.subtitle = subtitle_of(job.run, *tree, job.metric, job.options.selection);
  svg.icicle = job.options.icicle;
  svg.differential = job.options.base != nullptr;
  svg.amount = [&](int64_t value) { return amount_of(job.run.contents(), job.metric, value); };
  write_svg(*tree, svg, job.output);
  return {};
}

constexpr FormatSpec kFormats[] = {{
    .name = "svg",
    .place = 30,
    .title = "SVG",
    .help = "a flame graph that zooms and searches",
    .metrics = kTimeMetrics | kHeapMetrics,
    .one_metric = true,
    .compares = true,
    .suffixes = {".svg"},
    .write = write,
}};

}  // namespace

std::span<const FormatSpec> svg_formats() {
  return kFormats;
}

}  // namespace assay::formats
