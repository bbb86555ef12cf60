#include <cctype>
#include <charconv>
#include <fstream>

#include <unistd.h>

#include "analysis/compare/compare.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "report/comparison.h"
#include "run/reader.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay diff before.assay --vs after.assay                    one run a side: descriptive\n"
    "  assay diff base-*.assay --vs new-*.assay --per request      several a side: tested\n"
    "  assay diff base-*.assay --vs new-*.assay --format md        a comment for a pull request\n"
    "  assay diff base-*.assay --vs new-*.assay --fail-on 'cpu_per_request>+3%'\n"
    "\n"
    "--fail-on MEASURE>+N% or MEASURE<-N% (repeatable) exits 3 when the change is shown and "
    "beyond\n"
    "it; measures are named in --format json: throughput, latency_p99, cpu_per_request, …";

constexpr int kFailedOn = 3;

struct Limit {
  std::string measure;
  bool above = true;
  double percent = 0;
};

Result<Limit> parse_limit(const std::string& text) {
  size_t sign = text.find_first_of("<>");
  auto wrong = [&] {
    return fail_with_remedy(fmt::format("--fail-on {}: not of the form MEASURE>+N%", text),
                            "--fail-on 'cpu_per_request>+3%'");
  };
  if (sign == std::string::npos || sign == 0) return wrong();
  Limit limit{text.substr(0, sign), text[sign] == '>', 0};
  std::string number = text.substr(sign + 1);
  if (number.ends_with('%')) number.pop_back();
  if (number.starts_with('+')) number.erase(0, 1);
  auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), limit.percent);
  if (status != std::errc() || end != number.data() + number.size()) return wrong();
  return limit;
}

class DiffCommand final : public Command {
 public:
  explicit DiffCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("base", base_, "Runs to compare with")->required()->type_name("RUN");
    parser->add_option("--vs", next_, "Runs to compare")->required()->type_name("RUN");
    parser->add_option("--per", per_, "request, second or share (default request with load)")
        ->check(CLI::IsMember({"request", "second", "share"}))
        ->type_name("UNIT");
    parser->add_option("--format", format_, "text, md or json (default text)")
        ->check(CLI::IsMember({"text", "md", "json"}))
        ->type_name("FORMAT");
    parser->add_option("-o,--output", output_, "Write to a file instead of the terminal")
        ->type_name("FILE");
    parser->add_option("--fail-on", fail_on_, "Exit 3 when a measure changed beyond this")
        ->type_name("LIMIT");
  }

  int run(const Invocation&) override {
    std::vector<Limit> limits;
    for (const std::string& text : fail_on_) {
      auto limit = parse_limit(text);
      if (!limit) {
        print_error(limit.error());
        return kWrongUsage;
      }
      limits.push_back(*limit);
    }
    auto comparison = compare();
    if (!comparison) return print_error(comparison.error());
    if (int code = write(render(*comparison)); code != kDone) return code;
    return judge(*comparison, limits);
  }

 private:
  Result<analysis::Comparison> compare() {
    analysis::UnionTree tree;
    auto base = read(base_, tree);
    if (!base) return std::unexpected(base.error());
    auto next = read(next_, tree);
    if (!next) return std::unexpected(next.error());
    analysis::CompareOptions options;
    if (per_ == "request") options.per = analysis::Per::request;
    if (per_ == "second") options.per = analysis::Per::second;
    if (per_ == "share") options.per = analysis::Per::share;
    return analysis::compare(tree, std::move(*base), std::move(*next), options);
  }

  static Result<std::vector<analysis::RunValues>> read(const std::vector<std::string>& paths,
                                                       analysis::UnionTree& tree) {
    std::vector<analysis::RunValues> runs;
    for (const std::string& path : paths) {
      auto reader = run::Reader::open(path);
      if (!reader) return std::unexpected(reader.error());
      auto values = analysis::read_run_values(**reader, path, tree);
      if (!values) return std::unexpected(values.error());
      runs.push_back(std::move(*values));
    }
    return runs;
  }

  std::string render(const analysis::Comparison& comparison) const {
    if (format_ == "json") return report::render_comparison_json(comparison) + "\n";
    if (format_ == "md") return report::render_comparison_markdown(comparison);
    report::Style style;
    style.colour = output_.empty() && wants_colour(STDOUT_FILENO);
    return report::render_comparison_text(comparison, style);
  }

  int write(const std::string& text) const {
    if (output_.empty()) return write_out(stdout, text) ? kDone : kFailed;
    std::ofstream file(output_, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) return print_error(Error{fmt::format("cannot write {}", output_), "", 0});
    return kDone;
  }

  static int judge(const analysis::Comparison& comparison, const std::vector<Limit>& limits) {
    int code = kDone;
    for (const Limit& limit : limits) {
      auto measure = std::ranges::find(comparison.measures, limit.measure, &analysis::Measure::id);
      if (measure == comparison.measures.end()) {
        return print_error(
            Error{fmt::format("--fail-on: these runs have no measure {}", limit.measure),
                  "assay diff … --format json lists them", 0});
      }
      double change = (measure->ratio - 1) * 100;
      bool shown = limit.above ? measure->outcome == analysis::Outcome::higher
                               : measure->outcome == analysis::Outcome::lower;
      bool beyond = limit.above ? change > limit.percent : change < limit.percent;
      if (shown && beyond) {
        say(stderr, "assay: {} changed by {:+.1f} %, beyond {:+.1f} %\n", limit.measure, change,
            limit.percent);
        code = kFailedOn;
      } else if (beyond) {
        say(stderr, "assay: {} differs by {:+.1f} %, but these runs do not show a change{}\n",
            limit.measure, change, comparison.descriptive ? ": record at least two a side" : "");
      }
    }
    return code;
  }

  std::vector<std::string> base_, next_, fail_on_;
  std::string per_, format_ = "text", output_;
};

}  // namespace

std::unique_ptr<Command> make_diff_command(CLI::App& app) {
  return std::make_unique<DiffCommand>(
      app.add_subcommand("diff", "What changed between runs, and how sure that is"));
}

}  // namespace assay::cli
