#include "formats/table/write_table.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "formats/export/text.h"
#include "formats/tree/flame_tree.h"

namespace assay::formats {
namespace {

struct FunctionSums {
  int64_t samples = 0, self_cpu = 0, total_cpu = 0, waits = 0, self_off = 0, total_off = 0;
  size_t counted = 0;  // the last row that counted it
};

std::string cell(std::string_view text, char separator) {
  std::string clean = harmless_cell(clean_text(text));
  if (clean.find_first_of(std::string{separator, '"'}) == clean.npos) return clean;
  std::string quoted = "\"";
  for (char c : clean) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

void write_table(const SelectedRun& run, const std::vector<TotalRow>& rows, Metric by,
                 char separator, Output& output) {
  const analysis::CallTree& tree = run.tree();
  std::vector<FunctionSums> sums(tree.functions().size());
  FunctionSums nameless;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TotalRow& row = rows[i];
    analysis::PathIndex path = tree.path_of(row.stack);
    FunctionSums& leaf = path == 0 ? nameless : sums[tree.paths()[path].function];
    leaf.samples += row.samples;
    leaf.self_cpu += row.cpu_ns;
    leaf.waits += row.waits;
    leaf.self_off += row.off_ns;
    for (; path != 0; path = tree.paths()[path].parent) {
      FunctionSums& sum = sums[tree.paths()[path].function];
      if (sum.counted == i + 1) continue;
      sum.counted = i + 1;
      sum.total_cpu += row.cpu_ns;
      sum.total_off += row.off_ns;
    }
  }
  std::vector<size_t> order;
  for (size_t f = 0; f < sums.size(); ++f) {
    if (sums[f].counted != 0) order.push_back(f);
  }
  auto weight = [&](size_t f) {
    const FunctionSums& sum = sums[f];
    if (by == Metric::off) return std::tuple(sum.self_off, sum.total_off, sum.self_cpu);
    if (by == Metric::wall)
      return std::tuple(sum.self_cpu + sum.self_off, sum.total_cpu + sum.total_off, sum.self_cpu);
    return std::tuple(sum.self_cpu, sum.self_off, sum.total_cpu);
  };
  std::ranges::stable_sort(order, std::greater{}, weight);
  std::string s(1, separator);
  output.write(
      fmt::format("function{0}module{0}kind{0}file{0}line{0}samples{0}self_cpu_ns{0}"
                  "total_cpu_ns{0}waits{0}self_off_ns{0}total_off_ns\n",
                  s));
  auto line = [&](std::string_view name, std::string_view module, std::string_view kind,
                  std::string_view file, uint32_t number, const FunctionSums& sum) {
    output.write(cell(name, separator) + s + cell(module, separator) + s + std::string(kind) + s +
                 cell(file, separator) +
                 fmt::format("{0}{1}{0}{2}{0}{3}{0}{4}{0}{5}{0}{6}{0}{7}\n", s, number, sum.samples,
                             sum.self_cpu, sum.total_cpu, sum.waits, sum.self_off, sum.total_off));
  };
  for (size_t f : order) {
    const analysis::Function& function = tree.functions()[f];
    line(function.name, function.module, frame_kind_name(frame_kind(function)), function.file,
         function.line, sums[f]);
  }
  if (nameless.samples != 0 || nameless.waits != 0) {
    nameless.total_cpu = nameless.self_cpu;
    nameless.total_off = nameless.self_off;
    line("[no stack]", "", "marker", "", 0, nameless);
  }
}

}  // namespace assay::formats
