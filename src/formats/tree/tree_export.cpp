#include "formats/tree/tree_export.h"

#include "formats/export/export_checks.h"
#include "formats/export/missing_metric.h"

namespace assay::formats {

Result<FlameTree> make_tree(const WriteJob& job) {
  const auto& [run, rows, options, metric, output] = job;
  FlameTree tree("all", {metric, options.grouping, options.inverted, options.base != nullptr});
  tree.add(run, rows);
  if (options.base != nullptr) {
    auto base = SelectedRun::make(*options.base, options.selection);
    if (!base) return std::unexpected(base.error());
    auto base_rows = sum_up(**base);
    if (!base_rows) return std::unexpected(base_rows.error());
    if (auto held = check_side(run, rows, metric, options); !held)
      return std::unexpected(held.error());
    if (auto held = check_side(**base, *base_rows, metric, options); !held) {
      Error error = held.error();
      error.what = "the base: " + error.what;
      return std::unexpected(std::move(error));
    }
    if (!has_any(rows, metric) && !has_any(*base_rows, metric))
      return std::unexpected(missing_metric(run.contents(), rows, metric));
    tree.add(**base, *base_rows, true);
  }
  tree.finish();
  return tree;
}

}  // namespace assay::formats
