#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/group_flag.h"
#include "cli/flags/import_flags.h"
#include "cli/output/terminal.h"
#include "cli/run_or_capture.h"
#include "formats/format.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay import perf.data -o run.assay            a capture of perf record\n"
    "  perf record -g -o - -- ./server | assay import - -o run.assay\n"
    "  perf script | assay import - -o run.assay\n"
    "  assay import cpu.pb.gz -o run.assay            pprof, of Go or others\n"
    "  assay import 'http://127.0.0.1:8070/debug/pprof/profile?seconds=30' -o run.assay\n"
    "  assay import http://127.0.0.1:8070/debug/pprof/heap -o heap.assay\n"
    "  assay import stacks.folded --freq 99 -o run.assay\n"
    "  assay import offcpu.folded --unit us --as off -o run.assay\n"
    "\n"
    "The format is recognised from the file's contents. What the file does not contain (times,\n"
    "threads, waits) is missing in the run, too; `assay report` says so. Formats: docs/import.md.";

constexpr size_t kHelpWidth = 60;

std::vector<std::string> names_of(const formats::Formats& formats) {
  std::vector<std::string> names;
  for (const formats::FormatSpec* format : formats) names.emplace_back(format->name);
  return names;
}

std::string counted(uint64_t count, std::string_view noun, std::string_view rest = "") {
  return fmt::format("{} {}{}{}", format_count(count), noun, count == 1 ? "" : "s", rest);
}

std::string taken_text(const session::ImportOutcome& outcome) {
  std::string heap = counted(outcome.heap_sums, "sum", " of allocations");
  if (outcome.heap_sums > 0 && outcome.samples == 0 && outcome.waits == 0) return heap;
  return fmt::format("{}, {}{}", counted(outcome.samples, "sample"), counted(outcome.waits, "wait"),
                     outcome.heap_sums > 0 ? ", " + heap : "");
}

bool is_nothing(const session::ImportOutcome& outcome) {
  return outcome.samples == 0 && outcome.waits == 0 && outcome.heap_sums == 0;
}

class ImportCommand final : public Command {
 public:
  explicit ImportCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("files", options_.inputs, "Files, - for standard input, or http URLs")
        ->required()
        ->type_name("FILE");
    parser->add_option("-o,--output", options_.output, "Run file to write")
        ->required()
        ->type_name("RUN");
    parser
        ->add_option("--format", options_.format,
                     formats::format_list(formats::read_formats(), " or ", kHelpWidth) +
                         " (default: recognised)")
        ->check(CLI::IsMember(names_of(formats::read_formats())))
        ->type_name("FORMAT");
    flags_.add_to(*parser);
    parser->add_flag("--overwrite", options_.overwrite, "Replace the run file if it exists");
    parser->add_flag("-q,--quiet", quiet_, "Say nothing when all went well");
    add_group_flag(*parser);
  }

  int run(const Invocation& invocation) override {
    options_.command_line = invocation.command_line;
    flags_.fill(options_);
    if (auto fine = session::check_import(options_); !fine) return print_error(fine.error());
    session::Confinement rights = reading({}, options_.output);
    rights.reads = options_.inputs.size() == 1 ? options_.inputs.front() : "the files";
    allow_capture(rights, options_.inputs);
    return confined(rights, [this] { return import(); });
  }

 private:
  int import() {
    auto outcome = session::import_files(options_);
    if (!outcome) return print_error(outcome.error());
    if (is_nothing(*outcome)) {
      say(stderr, "{}: no samples, no waits and no allocations were found: the run holds nothing\n",
          options_.output);
    } else if (!quiet_) {
      say(stderr, "{}: {}   (assay report {})\n", options_.output, taken_text(*outcome),
          options_.output);
    }
    return kDone;
  }

  session::ImportOptions options_;
  ImportFlags flags_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import_command(CLI::App& app) {
  return std::make_unique<ImportCommand>(
      app.add_subcommand("import", "Make a run from another tool's capture"));
}

}  // namespace assay::cli
