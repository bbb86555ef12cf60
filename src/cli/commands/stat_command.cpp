#include <unistd.h>

#include "analysis/profile/counter_ratios.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags/target_options.h"
#include "cli/output/stat_output.h"
#include "cli/output/terminal.h"
#include "cli/stop_signals.h"
#include "report/text/counters_text.h"
#include "session/stat/stat.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay stat --port 8000                     10 s of the server on port 8000\n"
    "  assay stat --name redis-server --for 30s --interval 1s\n"
    "  assay stat --pid 4711 --per-thread\n"
    "  assay stat --port 8000 --load 'http://127.0.0.1:8000/ -c 16'    counts per request\n"
    "  assay stat -- ./batch --all                start it and count it to its end\n"
    "  assay stat --list                          which events this machine has\n"
    "\n"
    "Events whose ratio is shown are counted over the same time. Where the hardware has fewer\n"
    "counters than events, the events take turns; their numbers are then scaled, and marked.";

class StatCommand final : public Command {
 public:
  explicit StatCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    target_.add_to(*parser);
    parser->add_option("--for", duration_, "How long (default 10s; with -- until the command ends)")
        ->type_name("TIME");
    parser->add_option("--interval", interval_, "Print counts this often as well")
        ->type_name("TIME");
    parser->add_flag("--per-thread", options_.per_thread, "Also print the counts of each thread");
    parser
        ->add_option(
            "--load", options_.load.what,
            "Drive the server meanwhile: 'URL [options of assay load]'; counts per request")
        ->type_name("LOAD");
    parser
        ->add_option("--ready", options_.load.ready_url,
                     "With --load: wait until this URL answers well (default: the load's own URL)")
        ->type_name("URL");
    parser
        ->add_option("--ready-timeout", ready_timeout_,
                     "How long to wait until it is ready (default 30s)")
        ->type_name("TIME");
    parser->add_flag("--no-syscalls", no_syscalls_,
                     "Do not count system calls (counting adds 0.1 µs to each)");
    parser->add_flag("--list", list_, "Say which events can be counted here");
    parser->add_flag("--json", json_, "Print JSON: one object a line");
  }

  int run(const Invocation& invocation) override {
    if (list_) return list();
    if (auto ready = prepare(invocation); !ready) {
      print_error(ready.error());
      return kWrongUsage;
    }
    install_stop_signals();
    auto outcome = session::stat(options_, stop_requested(),
                                 [this](double from_s, double to_s, const model::Counts& counts) {
                                   show_interval(from_s, to_s, counts);
                                 });
    if (!outcome) return print_error(outcome.error());
    show(*outcome);
    return outcome->launched_exit ? outcome->launched_exit->exit_code() : kDone;
  }

 private:
  Result<void> prepare(const Invocation& invocation) {
    auto spec = target_.spec(invocation.launched_command);
    if (!spec) return std::unexpected(spec.error());
    spec->output_to_stderr = json_;
    bool driven = !options_.load.what.empty();
    bool to_its_end = !spec->command.empty() && !driven;  // a server under load has none
    auto duration = parse_duration_ns(!duration_.empty() ? duration_ : to_its_end ? "0" : "10s");
    if (!duration) return std::unexpected(duration.error());
    if (!duration_.empty() && *duration == 0) return fail("--for 0 would count nothing");
    auto interval = parse_duration_ns(interval_);
    if (!interval) return std::unexpected(interval.error());
    auto ready = parse_duration_ns(ready_timeout_);
    if (!ready) return std::unexpected(ready.error());
    if (!driven && !options_.load.ready_url.empty()) return fail("--ready goes with --load");
    options_.target = *spec;
    options_.duration_ns = *duration;
    options_.interval_ns = *interval;
    options_.syscalls = !no_syscalls_;
    options_.load.ready_timeout_ns = *ready;
    options_.load.ready_port = spec->port;
    return {};
  }

  int list() {
    session::Countable countable = session::countable_events();
    const model::Counts& counts = countable.events;
    for (size_t i = 0; i < counts.size(); ++i) {
      say(stdout, "{:26} {}\n", report::counter_name(static_cast<model::CounterId>(i)),
          counts[i].counted ? "yes" : "no: " + counts[i].problem);
    }
    say(stdout, "{:26} {}\n{:26} {}\n", "top-down analysis",
        countable.top_down.empty() ? "yes" : "no: " + countable.top_down, "system calls by name",
        countable.syscalls);
    return kDone;
  }

  void show_interval(double from_s, double to_s, const model::Counts& counts) {
    if (json_) {
      say(stdout, "{}\n", interval_json(from_s, to_s, counts));
    } else {
      say(stdout, "{}\n{}", interval_label(to_s, options_.interval_ns),
          report::render_counters_text({to_s - from_s, counts}, style()));
    }
    fflush(stdout);
  }

  void show(const session::StatOutcome& outcome) {
    if (json_) {
      say(stdout, "{}\n", whole_json(outcome));
      if (!outcome.no_requests.empty()) say(stderr, "assay: {}\n", outcome.no_requests);
      return;
    }
    report::CountedBesides besides = besides_of(outcome);
    report::CountersShown shown{outcome.seconds, outcome.counts, outcome.requests, &besides};
    show_heading(outcome);
    std::string idle = analysis::idle_remark(outcome.counts, outcome.seconds);
    if (!idle.empty()) say(stdout, "! {}\n", idle);
    if (outcome.requests > 0)
      say(stdout, "{} requests answered, {:.0f}/s\n", outcome.requests,
          static_cast<double>(outcome.requests) / outcome.seconds);
    if (!outcome.no_requests.empty()) say(stdout, "! {}\n", outcome.no_requests);
    say(stdout, "{}", report::render_counters_text(shown, style()));
    say(stdout, "  {:26} {:>14}\n  {:26} {:>14}\n", "voluntary switches",
        outcome.voluntary_switches, "involuntary switches", outcome.involuntary_switches);
    say(stdout, "{}", report::render_uncounted(outcome.counts, style()));
    say(stdout, "{}", report::render_besides(shown, style()));
    for (const session::ThreadCounts& thread : outcome.per_thread) {
      say(stdout, "\n{}\n{}", thread_label(thread),
          report::render_counters_text({outcome.seconds, thread.counts}, style()));
    }
  }

  static void show_heading(const session::StatOutcome& outcome) {
    say(stdout, "{} process{}, {} thread{}, {:.2f} s{}{}\n", outcome.processes,
        outcome.processes == 1 ? "" : "es", outcome.threads, outcome.threads == 1 ? "" : "s",
        outcome.seconds,
        outcome.user_only ? ", user mode only (not permitted to count the kernel)" : "",
        outcome.end == session::EndReason::target_exited ? ", until the target ended"
        : outcome.end == session::EndReason::interrupted ? ", until it was interrupted"
                                                         : "");
  }

  static report::Style style() {
    report::Style style;
    style.colour = wants_colour(STDOUT_FILENO);
    return style;
  }

  TargetOptions target_;
  session::StatOptions options_;
  std::string duration_;
  std::string interval_ = "0";
  std::string ready_timeout_ = "30s";
  bool list_ = false;
  bool no_syscalls_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_stat_command(CLI::App& app) {
  return std::make_unique<StatCommand>(
      app.add_subcommand("stat", "Count what the hardware and the kernel do for a server"));
}

}  // namespace assay::cli
