#include "cli/output/comparison_output.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "analysis/compare/read_runs.h"
#include "analysis/compare/statistics/measures.h"
#include "cli/commands.h"
#include "cli/output/terminal.h"
#include "formats/svg/compared_svg.h"
#include "report/comparison/comparison.h"
#include "report/comparison/comparison_html.h"

namespace assay::cli {
namespace {

// "+3" for more, "-3" for less; a plain number goes with its sign. A limit that any change passes,
// or none can, is a slip.
std::optional<double> parse_percent(std::string number, bool above) {
  if (number.ends_with('%')) number.pop_back();
  bool sign_given = number.starts_with('+') || number.starts_with('-');
  if (sign_given && number.starts_with('+') != above) return {};
  if (sign_given) number.erase(0, 1);
  double value = 0;
  auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
  bool whole = status == std::errc() && end == number.data() + number.size();
  if (!whole || !std::isfinite(value) || value < 0) return {};
  return above ? value : -value;
}

Result<ChangeLimit> parse_limit(const std::string& text) {
  size_t sign = text.find_last_of("<>");  // names of locks may hold others
  auto wrong = [&] {
    return fail_with_remedy(
        fmt::format("--fail-on {}: not of the form MEASURE>+N% or MEASURE<-N%", text),
        "--fail-on 'cpu_per_request>+3%'");
  };
  if (sign == std::string::npos || sign == 0) return wrong();
  ChangeLimit limit{text.substr(0, sign), text[sign] == '>', 0};
  auto percent = parse_percent(text.substr(sign + 1), limit.above);
  if (!percent) return wrong();
  limit.percent = *percent;
  if (!analysis::is_measure_id(limit.measure))
    return fail_with_remedy(
        fmt::format("--fail-on {}: there is no measure {}", text, limit.measure),
        "cpu_per_request, throughput, latency_p99, …; docs/diff.md and --format json "
        "list all measures");
  return limit;
}

std::string svg_of(const ComparedRuns& compared) {
  formats::Output output = formats::Output::to_memory();
  formats::write_compared_svg(compared.tree, compared.comparison, output);
  return output.text();
}

}  // namespace

Result<std::vector<ChangeLimit>> parse_limits(const std::vector<std::string>& texts) {
  std::vector<ChangeLimit> limits;
  for (const std::string& text : texts) {
    auto limit = parse_limit(text);
    if (!limit) return std::unexpected(limit.error());
    limits.push_back(*limit);
  }
  return limits;
}

namespace {

Result<void> refuse_repeated_in(const std::vector<std::string>& side) {
  std::set<std::string> seen;
  for (const std::string& path : side) {
    std::error_code unknown;
    std::string file =
        std::filesystem::weakly_canonical(std::filesystem::absolute(path), unknown).string();
    if (!seen.insert(unknown ? path : file).second)
      return fail_with_remedy(fmt::format("{} is given twice on one side", path),
                              "record another run");
  }
  return {};
}

}  // namespace

Result<void> refuse_repeated(const std::vector<std::string>& base,
                             const std::vector<std::string>& next) {
  for (const auto* side : {&base, &next}) {
    if (auto fine = refuse_repeated_in(*side); !fine) return fine;
  }
  return {};
}

Result<ComparedRuns> compare_files(const std::vector<std::string>& base,
                                   const std::vector<std::string>& next, const std::string& per,
                                   const run::Selection& selection) {
  ComparedRuns out;
  std::vector<std::string> paths = base;
  paths.insert(paths.end(), next.begin(), next.end());
  auto runs = analysis::read_runs(paths, out.tree, selection);
  if (!runs) return std::unexpected(runs.error());
  auto split = runs->begin() + static_cast<std::ptrdiff_t>(base.size());
  analysis::CompareOptions options;
  if (per == "request") options.per = analysis::Per::request;
  if (per == "second") options.per = analysis::Per::second;
  if (per == "share") options.per = analysis::Per::share;
  if (per == "run") options.per = analysis::Per::run;
  auto compared =
      analysis::compare(out.tree, {runs->begin(), split}, {split, runs->end()}, options);
  if (!compared) return std::unexpected(compared.error());
  out.comparison = std::move(*compared);
  if (!selection.is_whole()) {
    out.comparison.warnings.push_back(
        fmt::format("only a part of every run is compared: {}", run::describe(selection)));
  }
  return out;
}

std::string format_of(const std::string& path) {
  for (const char* format : {"md", "json", "html", "svg"}) {
    if (path.ends_with(std::string(".") + format)) return format;
  }
  return "text";
}

std::string render(const ComparedRuns& compared, const std::string& format, bool colour) {
  const analysis::Comparison& comparison = compared.comparison;
  if (format == "json") return report::render_comparison_json(comparison) + "\n";
  if (format == "md") return report::render_comparison_markdown(comparison);
  if (format == "svg") return svg_of(compared);
  if (format == "html") return report::render_comparison_html(comparison, svg_of(compared));
  report::Style style;
  style.colour = colour;
  return report::render_comparison_text(comparison, style);
}

int judge_limits(const analysis::Comparison& comparison, const std::vector<ChangeLimit>& limits) {
  int code = kDone;
  for (const ChangeLimit& limit : limits) {
    auto measure = std::ranges::find(comparison.measures, limit.measure, &analysis::Measure::id);
    if (measure == comparison.measures.end()) {
      int failed =
          print_error(Error{fmt::format("--fail-on: these runs have no measure {}", limit.measure),
                            "--format json lists them", 0});
      if (code == kDone) code = failed;
      continue;
    }
    double change = (measure->ratio - 1) * 100;
    bool shown = limit.above ? measure->outcome == analysis::Outcome::higher
                             : measure->outcome == analysis::Outcome::lower;
    bool beyond = limit.above ? change > limit.percent : change < limit.percent;
    if (shown && beyond) {
      say(stderr, "assay: {} changed by {:+.1f} %, the limit is {:+.1f} %\n", limit.measure, change,
          limit.percent);
      code = kFailedOn;
    } else if (beyond) {
      say(stderr, "assay: {} differs by {:+.1f} %, but these runs do not show a change{}\n",
          limit.measure, change,
          comparison.descriptive ? ": record at least two on each side" : "");
    }
  }
  return code;
}

}  // namespace assay::cli
