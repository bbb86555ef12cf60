#include "formats/svg/compared_svg.h"

#include <cmath>

#include "analysis/compare/functions/node_changes.h"
#include "formats/svg/write_svg.h"

namespace assay::formats {
namespace {

constexpr double kFine = 1000;  // values are kept as integers of a thousandth of a nanosecond

int64_t fine(double ns) {
  return static_cast<int64_t>(std::llround(ns * kFine));
}

FrameKind kind_of(const analysis::UnionTree::Function& function) {
  if (!function.named) return FrameKind::marker;
  return function.module == "[kernel]" ? FrameKind::kernel : FrameKind::application;
}

std::string number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string runs(size_t count) {
  return fmt::format("{} run{}", count, count == 1 ? "" : "s");
}

}  // namespace

void write_compared_svg(const analysis::UnionTree& tree, const analysis::Comparison& comparison,
                        Output& output) {
  std::vector<analysis::NodeChange> changes = analysis::node_changes(tree, comparison);
  FlameTree flame("all", {Metric::cpu, Grouping::none, false});
  flame.set_values(0, fine(changes[0].base_self), fine(changes[0].next_self), changes[0].shown);
  std::vector<uint32_t> placed(tree.nodes().size());
  for (size_t i = 1; i < tree.nodes().size(); ++i) {
    const analysis::UnionTree::Node& node = tree.nodes()[i];
    const analysis::UnionTree::Function& function = tree.functions()[node.function];
    placed[i] = flame.add_node(placed[node.parent],
                               {function.name, function.module, "", 0, kind_of(function)});
    flame.set_values(placed[i], fine(changes[i].base_self), fine(changes[i].next_self),
                     changes[i].shown);
  }
  flame.finish();
  analysis::TimeUnit unit = analysis::time_unit(comparison.per);
  SvgOptions options;
  options.title = "CPU time, compared";
  options.subtitle = fmt::format(
      "{} before, {} now · width: the dearer side's {} · {}", runs(comparison.base.runs.size()),
      runs(comparison.next.runs.size()), unit.name,
      comparison.descriptive
          ? "one run on a side: descriptive, not a finding"
          : fmt::format("grey: not shown beyond ±{:.1f} %", analysis::kSmallestFloor * 100));
  options.icicle = true;
  options.differential = true;
  options.tested = true;
  options.amount = [unit](int64_t value) {
    return fmt::format("{} {}", number(static_cast<double>(value) / kFine * unit.scale), unit.name);
  };
  write_svg(flame, options, output);
}

}  // namespace assay::formats
