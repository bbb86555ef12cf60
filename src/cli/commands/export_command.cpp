#include <filesystem>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/group_flag.h"
#include "cli/flags/selection_flags.h"
#include "cli/output/terminal.h"
#include "cli/run_or_capture.h"
#include "formats/export/export.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay export run.assay -o cpu.svg                       a flame graph of on-CPU time\n"
    "  assay export run.assay --metric off --no-idle -o off.svg   of the time that work was held "
    "up\n"
    "  assay export new.assay --base old.assay -o diff.svg     what changed\n"
    "  assay export run.assay -o run.pb.gz && go tool pprof -http :8080 run.pb.gz\n"
    "  assay export run.assay --format folded --split process -o stacks/\n"
    "  assay export run.assay --format speedscope --thread worker -o run.speedscope.json\n"
    "  assay export perf.data -o cpu.svg                       of another tool's capture, without "
    "an import\n"
    "  assay export heap.assay --metric inuse_space -o heap.svg    the live heap\n"
    "  assay export run.assay --format tsv --from 2s --to 3s | head\n"
    "\n"
    "Times are in ns, except where the format has its own unit. Formats: docs/export.md.";

constexpr size_t kHelpWidth = 66;

class ExportCommand final : public Command {
 public:
  explicit ExportCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("run", run_path_, "Run file, or a capture that assay import takes")
        ->required()
        ->type_name("RUN");
    parser
        ->add_option("--format", format_,
                     formats::format_list(formats::written_formats(), " or ", kHelpWidth) +
                         "\n(default: by the output's suffix)")
        ->type_name("FORMAT");
    parser->add_option("-o,--output", output_, "File to write, or directory with --split")
        ->type_name("FILE");
    parser
        ->add_option("--metric", metric_,
                     "cpu, off, wall, lock, runqueue, samples or waits (default cpu);\nfor a heap "
                     "inuse_space, inuse_objects, alloc_space or alloc_objects")
        ->type_name("METRIC");
    selection_.add_to(*parser);
    selection_.add_stacks_to(*parser);
    parser->add_option("--by", grouping_, "Group by none, process, pool or thread (svg, folded)")
        ->check(CLI::IsMember({"none", "process", "pool", "thread"}))
        ->type_name("WHAT");
    parser->add_flag("--inverted", options_.inverted, "Leaf functions at the root (svg, folded)");
    parser->add_flag("--icicle", options_.icicle, "Root at the top (svg)");
    parser->add_option("--base", base_path_, "Compare with this run (svg)")->type_name("RUN");
    parser->add_option("--title", options_.title, "Heading (svg)")->type_name("TEXT");
    flags_.add_to(*parser, "When RUN is another tool's capture");
    parser->add_option("--split", split_, "process: one file per process, into directory -o")
        ->check(CLI::IsMember({"process"}))
        ->type_name("WHAT");
    add_group_flag(*parser);
  }

  int run(const Invocation&) override {
    if (auto ready = prepare(); !ready) {
      print_error(ready.error());
      return kWrongUsage;
    }
    RunOrCapture run(run_path_), base(base_path_.empty() ? run_path_ : base_path_);
    session::Confinement rights = reading({}, split_.empty() ? output_ : "");
    rights.reads = run_path_;
    run.allow(rights);
    if (!base_path_.empty()) base.allow(rights);
    if (!split_.empty()) {
      std::error_code error;
      std::filesystem::create_directories(output_, error);
      if (error)
        return print_error({fmt::format("cannot make {}: {}", output_, error.message()), "", 0});
      rights.files.output_folders.push_back(output_);
    }
    return confined(rights, [&] { return write(run, base); });
  }

 private:
  int write(const RunOrCapture& from, const RunOrCapture& compared) {
    auto reader = from.open(flags_, shows_times());
    if (!reader) return print_error(reader.error());
    std::unique_ptr<run::Reader> base;
    if (!base_path_.empty()) {
      auto opened = compared.open(flags_, shows_times());
      if (!opened) return print_error(opened.error());
      base = std::move(*opened);
      options_.base = base.get();
    }
    if (!split_.empty()) return export_split(**reader);
    auto done = formats::export_run(**reader, options_, output_);
    if (done) return kDone;
    // `assay export … | head` ends quietly.
    return done.error().code == EPIPE ? kFailed : print_error(done.error());
  }

  Result<void> prepare() {
    options_.format =
        format_.empty() ? formats::format_of_file(output_) : formats::find_format(format_);
    if (options_.format == nullptr || options_.format->write == nullptr) {
      return fail_with_remedy(
          format_.empty() ? "no format given" : fmt::format("'{}' is no format", format_),
          "--format " + formats::format_choice(formats::written_formats()));
    }
    if (!metric_.empty()) {
      options_.metric = formats::parse_metric(metric_);
      if (!options_.metric) {
        return fail_with_remedy(fmt::format("'{}' is no metric", metric_),
                                "--metric cpu|off|wall|lock|runqueue|samples|waits|inuse_space|"
                                "inuse_objects|alloc_space|alloc_objects");
      }
    }
    auto selection = selection_.selection();
    if (!selection) return std::unexpected(selection.error());
    options_.selection = std::move(*selection);
    options_.grouping = grouping_ == "none"     ? formats::Grouping::none
                        : grouping_ == "pool"   ? formats::Grouping::pool
                        : grouping_ == "thread" ? formats::Grouping::thread
                                                : formats::Grouping::process;
    return check_place();
  }

  bool shows_times() const { return options_.format->has_times; }

  Result<void> check_place() const {
    if (!base_path_.empty() && !options_.format->compares) {
      return fail_with_remedy("--base is for flame graphs", "--format svg, or assay diff");
    }
    if (!split_.empty() && output_.empty()) {
      return fail_with_remedy("--split needs a directory", "-o DIR");
    }
    bool binary = options_.format->binary;
    if (split_.empty() && output_.empty() && binary && isatty(STDOUT_FILENO) != 0) {
      return fail_with_remedy(fmt::format("{} is not for a terminal", options_.format->name),
                              fmt::format("-o run{}", options_.format->suffixes[0]));
    }
    std::error_code ignored;
    if (!output_.empty() && std::filesystem::equivalent(output_, run_path_, ignored)) {
      return fail_with_remedy(fmt::format("{} is the run itself", output_),
                              "choose another file with -o");
    }
    return {};
  }

  int export_split(const run::Reader& reader) {
    auto paths = formats::export_by_process(reader, options_, output_,
                                            std::string(options_.format->suffixes[0]));
    if (!paths) return print_error(paths.error());
    if (paths->empty()) {
      return print_error({"no process of the run has anything of this metric",
                          "assay report RUN shows what it holds", 0});
    }
    for (const std::string& path : *paths) say(stdout, "{}\n", path);
    return kDone;
  }

  std::string run_path_, format_, output_, metric_, base_path_, split_;
  std::string grouping_ = "process";
  formats::ExportOptions options_;
  SelectionFlags selection_;
  ImportFlags flags_;  // of a capture
};

}  // namespace

std::unique_ptr<Command> make_export_command(CLI::App& app) {
  return std::make_unique<ExportCommand>(
      app.add_subcommand("export", "Write a run in another tool's format"));
}

}  // namespace assay::cli
