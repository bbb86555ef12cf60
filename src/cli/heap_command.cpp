#include <algorithm>

#include <unistd.h>

#include "analysis/analyse.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/default_output.h"
#include "cli/source_files.h"
#include "cli/stop_signals.h"
#include "cli/target_options.h"
#include "cli/terminal.h"
#include "report/json.h"
#include "report/text.h"
#include "run/reader.h"
#include "session/cache_dir.h"
#include "session/heap_session.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay heap -- ./server --threads 4          start it and profile its heap to its end\n"
    "  assay heap --port 8000 --for 60s            attach to whoever listens on port 8000\n"
    "  assay heap --pid 4711 --rate 64k            sample more finely\n"
    "  assay heap --name redis-server --leaks      show suspected leaks alone\n"
    "  assay export RUN.assay --format svg --metric inuse_space -o heap.svg\n"
    "\n"
    "Allocations are sampled by bytes: one in every --rate on average, with its stack; figures "
    "are\n"
    "estimates with their error. Of a running process only what it allocates from then on is "
    "known.";

std::string progress_text(const session::HeapProgress& state) {
  if (state.phase == "preparing") return "preparing: bringing the sampler into the target";
  int64_t elapsed = std::max<int64_t>(0, state.now - state.begin);
  std::string time =
      state.duration_ns > 0
          ? fmt::format(
                "{:.0f} s left",
                static_cast<double>(std::max<int64_t>(0, state.duration_ns - elapsed)) / 1e9)
          : fmt::format("{:.0f} s, Ctrl-C to end", static_cast<double>(elapsed) / 1e9);
  return fmt::format("{} {} · {} sampled allocations · {} live", state.phase, time,
                     format_count(state.allocations),
                     format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, state.live_bytes))));
}

class HeapCommand final : public Command {
 public:
  explicit HeapCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    target_.add_to(*parser);
    parser->add_option("--for", duration_, "How long (default 30s; a launched command: to its end)")
        ->type_name("TIME");
    parser->add_option("--rate", rate_, "Mean bytes between sampled allocations (default 512k)")
        ->type_name("BYTES");
    parser
        ->add_option("--snapshots", snapshots_,
                     "Note the live heap this often; growth is between them")
        ->type_name("TIME");
    parser->add_option("-o,--output", output_, "Run file to write (default TARGET-DATE-TIME.assay)")
        ->type_name("FILE");
    parser->add_flag("--overwrite", options_.overwrite, "Replace the run file if it exists");
    parser->add_flag("--leaks", leaks_,
                     "Print suspected leaks alone; exit status 1 if there are any");
    parser->add_flag("--no-source", no_source_, "Keep no source text in the run file");
    parser->add_flag("--debuginfod", options_.debuginfod,
                     "Fetch missing debug files from the servers in DEBUGINFOD_URLS");
    parser->add_flag("-q,--quiet", quiet_, "No progress and no report");
    parser->add_flag("--json", json_, "Print the report as JSON");
  }

  int run(const Invocation& invocation) override {
    if (auto ready = prepare(invocation); !ready) {
      print_error(ready.error());
      return kWrongUsage;
    }
    install_stop_signals();
    ProgressLine line(!quiet_);
    auto outcome = session::profile_heap(
        options_, stop_requested(),
        [&](const session::HeapProgress& state) { line.show(progress_text(state)); });
    line.clear();
    if (!outcome) return print_error(outcome.error());
    return conclude(*outcome);
  }

 private:
  Result<void> prepare(const Invocation& invocation) {
    auto spec = target_.spec(invocation.launched_command);
    if (!spec) return std::unexpected(spec.error());
    options_.target = *spec;
    options_.target_text = target_.text(invocation.launched_command);
    options_.command_line = invocation.command_line;
    auto duration = parse_duration_ns(!duration_.empty()      ? duration_
                                      : spec->command.empty() ? "30s"
                                                              : "0");
    if (!duration) return std::unexpected(duration.error());
    if (!duration_.empty() && *duration == 0) return fail("--for 0 would sample nothing");
    auto snapshots = parse_duration_ns(snapshots_);
    if (!snapshots) return std::unexpected(snapshots.error());
    auto rate = parse_byte_size(rate_);
    if (!rate) return std::unexpected(rate.error());
    options_.duration_ns = *duration;
    options_.sampling.snapshot_ns = *snapshots;
    options_.sampling.rate_bytes = *rate;
    options_.source = !no_source_;
    options_.output = output_.empty() ? default_output(options_.target_text) : output_;
    options_.cache_dir = session::default_cache_dir();
    return {};
  }

  // An empty profile is no mystery: why it is, and what would fill it.
  void explain_nothing(const session::HeapOutcome& outcome) const {
    uint64_t rate = options_.sampling.rate_bytes;
    if (outcome.ended_at_once) {
      say(stderr,
          "{} ended before its heap could be looked at: nothing was sampled, and there is no run "
          "file\n",
          options_.target.command.front());
    } else if (outcome.allocations == 0 && !quiet_) {
      say(stderr,
          "nothing was sampled: the target allocated little or nothing in that time (one sample is "
          "taken per {} on average)\n  try: --rate {}, a longer --for, or some load on it\n",
          format_bytes(rate), rate > 16384 ? "16k" : "1");
    }
  }

  int conclude(const session::HeapOutcome& outcome) {
    int code = outcome.launched_exit ? outcome.launched_exit->exit_code() : kDone;
    explain_nothing(outcome);
    if (outcome.ended_at_once) return code;
    if (outcome.write_error) code = print_error(*outcome.write_error);
    if (!quiet_) {
      int shown = show_report();
      if (code == kDone) code = shown;
      for (const session::HeapHold& hold : outcome.holds)
        say(stderr, "{}\n", session::to_text(hold));
      say(stderr, "run file: {}   (assay report {})\n", options_.output, options_.output);
    }
    return code;
  }

  int show_report() {
    auto reader = run::Reader::open(options_.output);
    if (!reader) return print_error(reader.error());
    analysis::Options options;
    options.run_path = options_.output;
    options.source = source_lines(**reader);
    auto report = analysis::analyse(**reader, options);
    if (!report) return print_error(report.error());
    if (json_) {
      say(stdout, "{}\n", report::render_json(*report));
      return kDone;
    }
    report::Style style;
    style.colour = wants_colour(STDOUT_FILENO);
    if (!leaks_) {
      say(stdout, "{}", report::render_text(*report, style));
      return kDone;
    }
    say(stdout, "{}", report::render_leaks(*report, style));
    bool any = std::any_of(report->heap.sites.begin(), report->heap.sites.end(),
                           [](const analysis::HeapSite& site) { return site.leaks; });
    return any ? kFailed : kDone;
  }

  TargetOptions target_;
  session::HeapOptions options_;
  std::string duration_;
  std::string rate_ = "512k";
  std::string snapshots_ = "0";
  std::string output_;
  bool leaks_ = false;
  bool no_source_ = false;
  bool quiet_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_heap_command(CLI::App& app) {
  return std::make_unique<HeapCommand>(
      app.add_subcommand("heap", "Profile a server's heap: what lives, what is allocated, leaks"));
}

}  // namespace assay::cli
