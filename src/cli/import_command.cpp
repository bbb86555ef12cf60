#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "session/cache_dir.h"
#include "session/import.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay import perf.data -o run.assay            a capture of perf record\n"
    "  perf record -g -o - -- ./server | assay import - -o run.assay\n"
    "  perf script | assay import - -o run.assay\n"
    "  assay import cpu.pb.gz -o run.assay            pprof, of Go or others\n"
    "  assay import 'http://127.0.0.1:8070/debug/pprof/profile?seconds=30' -o run.assay\n"
    "  assay import stacks.folded --freq 99 -o run.assay\n"
    "  assay import offcpu.folded --unit us --as off -o run.assay\n"
    "\n"
    "The format is told by the bytes. What a file does not know (times, threads, waits) stays\n"
    "absent; `assay report` says so. Formats: docs/import.md.";

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
                     "perf.data, perf-script, pprof, gperftools-cpu, gperftools-heap,\n"
                     "folded or speedscope (default: by the bytes)")
        ->check(CLI::IsMember(session::import_formats()))
        ->type_name("FORMAT");
    parser->add_option("--unit", unit_, "What folded numbers are: samples, ns, us or ms")
        ->check(CLI::IsMember({"samples", "ns", "us", "ms"}))
        ->type_name("UNIT");
    parser
        ->add_option("--as", meaning_,
                     "What folded or speedscope stacks hold that do not say it:\n"
                     "cpu, time on the CPU, or off, time blocked")
        ->check(CLI::IsMember({"cpu", "off"}))
        ->type_name("WHAT");
    parser->add_option("--freq", frequency_, "Samples per second, where the file does not say")
        ->check(CLI::Range(0.001, 1e9))
        ->type_name("HZ");
    parser->add_flag("--overwrite", options_.overwrite, "Replace the run file if it exists");
    parser->add_flag("--no-names", no_names_, "Do not name addresses by this machine's files");
    parser->add_flag("-q,--quiet", quiet_, "Say nothing when all went well");
  }

  int run(const Invocation& invocation) override {
    options_.command_line = invocation.command_line;
    options_.cache_dir = session::default_cache_dir();
    options_.symbolize = !no_names_;
    options_.read.unit_ns = unit_ == "ns"   ? 1
                            : unit_ == "us" ? kNsPerUs
                            : unit_ == "ms" ? kNsPerMs
                                            : 0;
    if (meaning_ == "cpu") options_.read.meaning = formats::Meaning::cpu;
    if (meaning_ == "off") options_.read.meaning = formats::Meaning::off;
    if (frequency_ > 0) options_.read.period_ns = static_cast<int64_t>(1e9 / frequency_);
    auto outcome = session::import_files(options_);
    if (!outcome) return print_error(outcome.error());
    if (!quiet_) {
      say(stderr, "{}: {} samples, {} waits   (assay report {})\n", options_.output,
          format_count(outcome->samples), format_count(outcome->waits), options_.output);
    }
    return kDone;
  }

 private:
  session::ImportOptions options_;
  std::string unit_ = "samples";
  std::string meaning_;
  double frequency_ = 0;
  bool no_names_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import_command(CLI::App& app) {
  return std::make_unique<ImportCommand>(
      app.add_subcommand("import", "Make a run of another tool's capture"));
}

}  // namespace assay::cli
