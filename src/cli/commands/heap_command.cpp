#include <algorithm>

#include "analysis/heap/heap_leaks.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/capture_flags.h"
#include "cli/output/progress_text.h"
#include "cli/output/terminal.h"
#include "cli/stop_signals.h"
#include "report/text/text.h"
#include "session/heap/heap_session.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay heap -- ./server --threads 4          start it and profile its heap to its end\n"
    "  assay heap --port 8000 --for 60s            attach to the server on port 8000\n"
    "  assay heap --pid 4711 --rate 64k            sample more finely\n"
    "  assay heap --name redis-server --leaks      show suspected leaks alone\n"
    "  assay export RUN.assay --format svg --metric inuse_space -o heap.svg\n"
    "\n"
    "Allocations are sampled: on average one for every --rate bytes, with its stack. All figures\n"
    "are estimates, and come with their error. In a process that runs already, only allocations\n"
    "after the attach are seen.\n"
    "\n"
    "Exit status: that of the launched command, if it ended by itself. With --leaks: 0 no leaks,\n"
    "3 leaks, 4 no leaks but the command failed, 1 it could not be decided, 2 wrong usage.";

// What --leaks answers; other numbers are Assay's failures, so that a command's own status can be
// taken for none of them.
constexpr int kLeaks = 3;
constexpr int kCommandFailed = 4;

std::string leaks_text(const analysis::Report& report, bool colour) {
  return report::render_leaks(report, {.colour = colour});
}

class HeapCommand final : public Command {
 public:
  explicit HeapCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    flags_.add_target(*parser);
    parser->add_option("--for", duration_, "How long (default 30s; a launched command: to its end)")
        ->type_name("TIME");
    parser->add_option("--rate", rate_, "Mean bytes between sampled allocations (default 512k)")
        ->type_name("BYTES");
    parser
        ->add_option(
            "--snapshots", snapshots_,
            "Take a snapshot of the live heap this often; the report shows growth between them")
        ->type_name("TIME");
    flags_.add_output(*parser);
    parser->add_flag(
        "--leaks", leaks_,
        "Print suspected leaks alone, and say by the exit status whether there are any");
    flags_.add_rest(*parser);
  }

  int run(const Invocation& invocation) override {
    if (auto ready = prepare(invocation); !ready) {
      print_error(ready.error());
      return kWrongUsage;
    }
    install_stop_signals();
    ProgressLine line(!flags_.quiet());
    auto outcome = session::profile_heap(
        options_, stop_requested(),
        [&](const session::HeapProgress& state) { line.show(progress_text(state)); });
    line.clear();
    if (!outcome) return print_error(outcome.error());
    return conclude(*outcome);
  }

 private:
  Result<void> prepare(const Invocation& invocation) {
    if (auto filled = flags_.fill(invocation, options_); !filled) return filled;
    const char* usual = options_.target.command.empty() ? "30s" : "0";
    auto duration = parse_duration_ns(duration_.empty() ? usual : duration_);
    if (!duration) return std::unexpected(duration.error());
    if (!duration_.empty() && *duration == 0) return fail("--for 0 would sample nothing");
    auto snapshots = parse_duration_ns(snapshots_);
    if (!snapshots) return std::unexpected(snapshots.error());
    auto rate = parse_byte_size(rate_);
    if (!rate) return std::unexpected(rate.error());
    options_.duration_ns = *duration;
    options_.sampling.snapshot_ns = *snapshots;
    options_.sampling.rate_bytes = *rate;
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
    } else if (outcome.allocations == 0 && !flags_.quiet() && !leaks_) {
      say(stderr,
          "nothing was sampled: the target allocated little or nothing in that time (one sample is "
          "taken per {} on average)\n  try: --rate {}, a longer --for, or some load on it\n",
          format_bytes(rate), rate > 16384 ? "16k" : "1");
    }
  }

  int conclude(const session::HeapOutcome& outcome) {
    int ended = outcome.launched_exit ? outcome.launched_exit->exit_code() : kDone;
    if (leaks_ && stop_requested()) ended = kDone;  // Ctrl-C ended it: it has not failed
    explain_nothing(outcome);
    if (leaks_ && ended != kDone) {
      say(stderr, "{} ended with exit status {}\n", options_.target.command.front(), ended);
    }
    if (outcome.ended_at_once) return leaks_ ? kFailed : ended;
    if (outcome.write_error) print_error(*outcome.write_error);
    int told = kDone;
    if (leaks_ || !flags_.quiet()) {
      told = confined(reading({options_.output}), [&] { return show_report(outcome, ended); });
    }
    if (!flags_.quiet()) flags_.show_end(options_.output, outcome.holds);
    if (outcome.write_error) return kFailed;
    return leaks_ || ended == kDone ? told : ended;
  }

  int show_report(const session::HeapOutcome& outcome, int ended) {
    auto report = flags_.conclude(options_.output, leaks_ ? leaks_text : whole_report);
    if (!report) return print_error(report.error());
    if (!leaks_) return kDone;
    analysis::LeakCircumstances circumstances;
    circumstances.asked_rate_bytes = options_.sampling.rate_bytes;
    circumstances.target_ended =
        options_.target.command.empty() && outcome.end == session::EndReason::target_exited;
    analysis::LeakVerdict verdict = analysis::judge_leaks(*report, circumstances);
    if (verdict.answer == analysis::LeakAnswer::suspected) return kLeaks;
    if (verdict.answer == analysis::LeakAnswer::unknown) {
      if (!flags_.quiet())
        say(stderr, "cannot decide whether it leaks: {}\n  try: {}\n", verdict.reason,
            verdict.remedy);
      return kFailed;
    }
    return ended != kDone ? kCommandFailed : kDone;
  }

  CaptureFlags flags_;
  session::HeapOptions options_;
  std::string duration_;
  std::string rate_ = "512k";
  std::string snapshots_ = "0";
  bool leaks_ = false;
};

}  // namespace

std::unique_ptr<Command> make_heap_command(CLI::App& app) {
  return std::make_unique<HeapCommand>(
      app.add_subcommand("heap", "Profile a server's heap: what lives, what is allocated, leaks"));
}

}  // namespace assay::cli
