#include <filesystem>

#include <fmt/core.h>
#include <unistd.h>

#include "analysis/analyse.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/group_flag.h"
#include "cli/flags/selection_flags.h"
#include "cli/output/terminal.h"
#include "cli/source_files.h"
#include "formats/export/output.h"
#include "report/json/json.h"
#include "report/markdown.h"
#include "report/text/text.h"
#include "run/reader.h"
#include "view/html.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay report run.assay                         read it here\n"
    "  assay report run.assay --pool 'worker-*'       one pool of threads\n"
    "  assay report run.assay --format md -o run.md   paste it into an issue\n"
    "  assay report run.assay --format html -o run.html   one page, to look at or to send\n"
    "  assay report run.assay --why idle              which waits are for work, and why\n"
    "  assay report run.assay --suspect 'malloc|free' is it the allocator?\n"
    "  assay report run.assay --format json | jq .quality";

class ReportCommand final : public Command {
 public:
  explicit ReportCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("run", run_path_, "Run file")->required()->type_name("RUN");
    parser->add_option("--format", format_, "text, md, json or html (default text)")
        ->check(CLI::IsMember({"text", "md", "json", "html"}))
        ->type_name("FORMAT");
    parser->add_flag("--json", json_, "Same as --format json");
    parser->add_option("-o,--output", output_, "Write to a file instead of the terminal")
        ->type_name("FILE");
    selection_.add_to(*parser);
    parser
        ->add_option(
            "--suspect", options_.suspects,
            "Functions that you suspect; the report confirms or refutes each, where it can")
        ->type_name("REGEX");
    parser->add_option("--why", why_, "Only this: idle (which waits are for work, and why)")
        ->check(CLI::IsMember({"idle"}))
        ->type_name("WHAT");
    parser->add_option("--rules", rule_dirs_, "Also use the rule files (*.toml) below DIR")
        ->type_name("DIR");
    parser->add_flag("--source", local_source_,
                     "Also read source lines from files of this machine that the run names");
    parser->add_flag("--no-source", no_source_, "Show no source lines, not even those in the run");
    add_group_flag(*parser);
  }

  int run(const Invocation&) override {
    auto selection = selection_.selection();
    if (!selection) return print_error(selection.error()), kWrongUsage;
    if (auto fine = refuse_time(*selection); !fine) return print_error(fine.error()), kWrongUsage;
    options_.selection = std::move(*selection);
    options_.run_path = run_path_;
    if (auto fine = check_output(); !fine) return print_error(fine.error());
    if (!why_.empty() && !json_ && format_ != "text" && format_ != "json") {
      return print_error(Error{"--why idle is text, or a part of the JSON report",
                               "leave out --format " + format_}),
             kWrongUsage;
    }
    analysis::RuleSet rules;
    if (!rule_dirs_.empty()) {
      rules = analysis::load_rules(rule_dirs_);
      options_.rules = &rules;
      for (const analysis::RuleError& error : rules.errors) {
        say(stderr, "assay: {} (this rule is left out)\n", error.text());
      }
    }
    session::Confinement rights = reading({run_path_}, output_);
    rights.files.sources = local_source_ && !no_source_;
    return confined(rights, [this] { return report(); });
  }

 private:
  Result<void> check_output() const {
    std::error_code ignored;
    if (output_.empty() || !std::filesystem::equivalent(output_, run_path_, ignored)) return {};
    return fail_with_remedy(fmt::format("{} is the run itself", output_),
                            "choose another file with -o");
  }

  int report() {
    auto reader = run::Reader::open(run_path_);
    if (!reader) return print_error(reader.error());
    if (!no_source_) options_.source = source_lines(**reader, local_source_);
    auto report = analysis::analyse(**reader, options_);
    if (!report) return print_error(report.error());
    if (format_ == "html") return write_page(std::move(*reader), *report);
    return write(render(*report));
  }

  std::string render(const analysis::Report& report) const {
    if (json_ || format_ == "json") return report::render_json(report) + "\n";
    if (format_ == "md") return report::render_markdown(report);
    report::Style style;
    style.colour = output_.empty() && wants_colour(STDOUT_FILENO);
    return why_.empty() ? report::render_text(report, style)
                        : report::render_why_idle(report, style);
  }

  int write_page(std::unique_ptr<run::Reader> reader, const analysis::Report& report) const {
    view::IndexOptions index_options;
    index_options.local_source = local_source_ && !no_source_;
    auto index = view::RunIndex::make(std::move(reader), run_path_, index_options);
    if (!index) return print_error(index.error());
    auto page = view::render_html(**index, (*index)->reader(), report::render_json(report));
    return page ? write(*page) : print_error(page.error());
  }

  int write(const std::string& text) const {
    if (output_.empty()) {
      bool written =
          fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
      return written ? kDone : kFailed;
    }
    auto written = formats::write_whole(output_, text);
    return written ? kDone : print_error(written.error());
  }

  std::string run_path_;
  std::string format_ = "text";
  bool json_ = false;
  std::string output_;
  std::string why_;
  std::vector<std::string> rule_dirs_;
  bool local_source_ = false;
  bool no_source_ = false;
  SelectionFlags selection_;
  analysis::Options options_;
};

}  // namespace

std::unique_ptr<Command> make_report_command(CLI::App& app) {
  return std::make_unique<ReportCommand>(app.add_subcommand("report", "Report what a run shows"));
}

}  // namespace assay::cli
