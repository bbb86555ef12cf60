#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>

#include <stdlib.h>
#include <unistd.h>

#include "analysis/analyse.h"
#include "analysis/load/load_summary.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/group_flag.h"
#include "cli/flags/target_options.h"
#include "cli/flags/usage.h"
#include "cli/output/sweep_output.h"
#include "cli/output/terminal.h"
#include "cli/stop_signals.h"
#include "run/reader.h"
#include "session/load/sweep.h"
#include "session/record/cache_dir.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay sweep --port 8000 --load http://127.0.0.1:8000/ --concurrency 1,2,4,8,16\n"
    "  assay sweep --port 50051 --load 'grpc://127.0.0.1:50051/helloworld.Greeter/SayHello' --for "
    "3s\n"
    "  assay sweep --load http://127.0.0.1:8000/ -o runs -- ./server --threads 4\n"
    "\n"
    "Every level is a short capture of its own; with -o they stay and `assay report` reads them.";

// For the run files of a sweep without -o; removed at the end.
class TemporaryDirectory {
 public:
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Result<std::string> make() {
    std::error_code ignored;
    std::string pattern = std::filesystem::temp_directory_path(ignored) / "assay-sweep-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) return fail_errno("cannot make {}", pattern);
    return path_ = pattern;
  }

 private:
  std::string path_;
};

Result<analysis::ScalingLevel> measure(const session::SweptLevel& swept) {
  auto reader = run::Reader::open(swept.run_path);
  if (!reader) return std::unexpected(reader.error());
  auto report = analysis::analyse(**reader, {});
  if (!report) return std::unexpected(report.error());
  auto load = analysis::summarise_load(**reader);
  if (!load) return std::unexpected(load.error());
  if (!*load) return fail("{} holds no results of the load", swept.run_path);
  analysis::ScalingLevel level;
  level.clients = swept.connections * std::max(1U, (*load)->streams);
  level.throughput = (*load)->throughput_per_s;
  level.p50_ns = (*load)->p50_ns;
  level.p90_ns = (*load)->p90_ns;
  level.p99_ns = (*load)->p99_ns;
  level.requests = (*load)->requests;
  level.errors = (*load)->errors;
  level.time = report->thread_time;
  level.window_ns = report->window_ns;
  level.generator_share = (*load)->generator_cpu_share;
  level.generator_saturated = (*load)->generator_saturated;
  level.covered = (*load)->covered();
  return level;
}

class SweepCommand final : public Command {
 public:
  explicit SweepCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    target_.add_to(*parser);
    parser
        ->add_option("--load", options_.record.load.what,
                     "Drive the server: 'URL [options of assay load]'")
        ->required()
        ->type_name("LOAD");
    parser
        ->add_option("--concurrency", options_.levels,
                     "Connections at each level (default 1,2,4,8,16)")
        ->delimiter(',')
        ->check(whole_number(1, 100000))
        ->type_name("N,N,…");
    parser->add_option("--for", duration_, "How long at each level (default 5s)")
        ->type_name("TIME");
    parser->add_option("--warmup", warmup_, "Load before each capture (default 1s)")
        ->type_name("TIME");
    parser
        ->add_option("--ready", options_.record.load.ready_url,
                     "Wait until this URL answers well (default: the load's own URL)")
        ->type_name("URL");
    parser
        ->add_option("--ready-timeout", ready_timeout_,
                     "How long to wait until it is ready (default 30s)")
        ->type_name("TIME");
    parser
        ->add_option("--freq", options_.record.frequency_hz,
                     "On-CPU samples per second and CPU (default 99)")
        ->check(whole_number(1, 100000))
        ->type_name("HZ");
    parser->add_option("-o,--output", output_, "Directory to keep the run files in")
        ->type_name("DIR");
    parser->add_flag("--overwrite", options_.record.overwrite, "Replace run files that exist");
    parser->add_flag("-q,--quiet", quiet_, "No progress");
    parser->add_flag("--json", json_, "Print the result as JSON");
    add_group_flag(*parser);
  }

  int run(const Invocation& invocation) override {
    if (auto ready = prepare(invocation); !ready) return print_error(ready.error()), kWrongUsage;
    TemporaryDirectory temporary;
    if (auto directory = make_directory(temporary); !directory)
      return print_error(directory.error());
    install_stop_signals();
    std::vector<session::SweptLevel> levels;
    ProgressLine line(!quiet_);
    auto swept = session::sweep(
        options_, stop_requested(),
        [&](uint32_t connections, const session::RecordProgress& state) {
          line.show(fmt::format("{} connections ({} of {}): {}", connections, levels.size() + 1,
                                options_.levels.size(), phase_text(state.phase)));
        },
        [&](const session::SweptLevel& level) -> Result<void> {
          levels.push_back(level);
          return {};
        });
    line.clear();
    // What was measured before something failed is worth showing.
    int code = swept ? kDone : print_error(swept.error());
    if (levels.empty()) return kFailed;
    std::vector<std::string> runs;
    for (const session::SweptLevel& level : levels) runs.push_back(level.run_path);
    int shown = confined(reading(runs), [&] { return measure_and_show(levels); });
    return code != kDone ? code : shown;
  }

 private:
  int measure_and_show(const std::vector<session::SweptLevel>& swept) const {
    std::vector<analysis::ScalingLevel> levels;
    int code = kDone;
    for (const session::SweptLevel& level : swept) {
      auto measured = measure(level);
      if (measured) levels.push_back(*measured);
      if (!measured) code = print_error(measured.error());
    }
    if (levels.empty()) return kFailed;
    show(std::move(levels));
    return code;
  }

  Result<void> prepare(const Invocation& invocation) {
    auto spec = target_.spec(invocation.launched_command);
    if (!spec) return std::unexpected(spec.error());
    session::RecordOptions& record = options_.record;
    record.target = *spec;
    record.target_text = target_.text(invocation.launched_command);
    record.command_line = invocation.command_line;
    for (auto [text, into] :
         {std::pair{&duration_, &record.duration_ns}, std::pair{&warmup_, &record.warmup_ns},
          std::pair{&ready_timeout_, &record.load.ready_timeout_ns}}) {
      auto parsed = parse_duration_ns(*text);
      if (!parsed) return std::unexpected(parsed.error());
      *into = *parsed;
    }
    if (record.duration_ns == 0) return fail("--for 0 would record nothing");
    if (options_.levels.empty()) options_.levels = {1, 2, 4, 8, 16};
    std::sort(options_.levels.begin(), options_.levels.end());
    auto end = std::unique(options_.levels.begin(), options_.levels.end());
    options_.levels.erase(end, options_.levels.end());
    record.cache_dir = session::default_cache_dir();
    record.reader_program = session::kOwnProgram;
    return {};
  }

  Result<void> make_directory(TemporaryDirectory& temporary) {
    if (output_.empty()) {
      auto made = temporary.make();
      if (!made) return std::unexpected(made.error());
      options_.directory = *made;
      return {};
    }
    std::error_code error;
    std::filesystem::create_directories(output_, error);
    if (error) return fail("cannot make {}: {}", output_, error.message());
    options_.directory = output_;
    return {};
  }

  void show(std::vector<analysis::ScalingLevel> levels) const {
    SweepTitle title{options_.record.target_text, options_.record.load.what,
                     options_.record.duration_ns};
    analysis::Scaling scaling = analysis::summarise_scaling(std::move(levels));
    say(stdout, "{}", json_ ? sweep_json(title, scaling) + "\n" : sweep_text(title, scaling));
    if (!quiet_ && !output_.empty()) say(stderr, "run files: {}/clients-*.assay\n", output_);
  }

  TargetOptions target_;
  session::SweepOptions options_;
  std::string duration_ = "5s";
  std::string warmup_ = "1s";
  std::string ready_timeout_ = "30s";
  std::string output_;
  bool quiet_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sweep_command(CLI::App& app) {
  return std::make_unique<SweepCommand>(app.add_subcommand(
      "sweep", "Capture a server at several concurrencies: where it stops scaling, and why"));
}

}  // namespace assay::cli
