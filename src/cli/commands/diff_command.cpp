#include <unistd.h>

#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/group_flag.h"
#include "cli/flags/selection_flags.h"
#include "cli/output/comparison_output.h"
#include "cli/output/terminal.h"
#include "formats/export/output.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay diff before.assay --vs after.assay                    one run on each side: shows "
    "differences\n"
    "  assay diff base-*.assay --vs new-*.assay --per request      several: tests them\n"
    "  assay diff base-*.assay --vs new-*.assay --format md        a comment for a pull request\n"
    "  assay diff base-*.assay --vs new-*.assay --fail-on 'cpu_per_request>+3%'\n"
    "\n"
    "--fail-on MEASURE>+N% or MEASURE<-N% makes the exit status 3 when the runs show that the\n"
    "measure changed by more than N %. It may be given several times. --format json lists the\n"
    "measures: throughput, latency_p99, cpu_per_request, …";

class DiffCommand final : public Command {
 public:
  explicit DiffCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("base", base_, "Runs before the change")->required()->type_name("RUN");
    parser->add_option("--vs", next_, "Runs after the change")->required()->type_name("RUN");
    parser
        ->add_option("--per", per_,
                     "Compare per request, second, share or run (default: request with load, run "
                     "for commands "
                     "that ended, share for imported runs)")
        ->check(CLI::IsMember({"request", "second", "share", "run"}))
        ->type_name("UNIT");
    parser
        ->add_option("--format", format_,
                     "text, md, json, html or svg (default: by -o's name, else text)")
        ->check(CLI::IsMember({"text", "md", "json", "html", "svg"}))
        ->type_name("FORMAT");
    parser->add_option("-o,--output", output_, "Write to a file instead of the terminal")
        ->type_name("FILE");
    selection_.add_to(*parser);
    parser->add_option("--fail-on", fail_on_, "Exit 3 when a measure changed by more than this")
        ->type_name("LIMIT");
    add_group_flag(*parser);
  }

  int run(const Invocation&) override {
    auto limits = parse_limits(fail_on_);
    if (!limits) return print_error(limits.error()), kWrongUsage;
    auto selection = selection_.selection();
    if (!selection) return print_error(selection.error()), kWrongUsage;
    if (auto fine = refuse_time(*selection); !fine) return print_error(fine.error()), kWrongUsage;
    std::vector<std::string> runs = base_;
    runs.insert(runs.end(), next_.begin(), next_.end());
    if (auto fine = refuse_repeated(base_, next_); !fine) return print_error(fine.error());
    return confined(reading(runs, output_), [&] { return compare(*limits, *selection); });
  }

 private:
  int compare(const std::vector<ChangeLimit>& limits, const run::Selection& selection) {
    auto compared = compare_files(base_, next_, per_, selection);
    if (!compared) return print_error(compared.error());
    if (format_.empty()) format_ = format_of(output_);
    std::string text = render(*compared, format_, output_.empty() && wants_colour(STDOUT_FILENO));
    if (output_.empty()) {
      if (!write_out(stdout, text)) return kFailed;
    } else if (auto written = formats::write_whole(output_, text); !written) {
      return print_error(written.error());
    }
    return judge_limits(compared->comparison, limits);
  }

  std::vector<std::string> base_, next_, fail_on_;
  std::string per_, format_, output_;
  SelectionFlags selection_;
};

}  // namespace

std::unique_ptr<Command> make_diff_command(CLI::App& app) {
  return std::make_unique<DiffCommand>(
      app.add_subcommand("diff", "What changed between runs, and how sure that is"));
}

}  // namespace assay::cli
