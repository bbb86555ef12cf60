#include <atomic>
#include <csignal>

#include <unistd.h>

#include "analysis/counter_ratios.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/target_options.h"
#include "cli/terminal.h"
#include "report/counters_text.h"
#include "report/printable.h"
#include "session/stat.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay stat --port 8000                     10 s of the server on port 8000\n"
    "  assay stat --name redis-server --for 30s --interval 1s\n"
    "  assay stat --pid 4711 --per-thread\n"
    "  assay stat --list                          which events this machine has\n"
    "\n"
    "Events whose ratio is shown are counted over the same time. Where the hardware has fewer\n"
    "counters than events they take turns: the numbers are scaled, and say so.";

std::atomic<bool> stop_requested{false};

void request_stop(int) {
  stop_requested = true;
}

class StatCommand final : public Command {
 public:
  explicit StatCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    target_.add_to(*parser);
    parser->add_option("--for", duration_, "How long (default 10s)")->type_name("TIME");
    parser->add_option("--interval", interval_, "Print counts this often as well")
        ->type_name("TIME");
    parser->add_flag("--per-thread", options_.per_thread, "Counts of each thread, too");
    parser->add_flag("--list", list_, "Say which events can be counted here");
    parser->add_flag("--json", json_, "Print JSON: one object a line");
  }

  int run(const Invocation& invocation) override {
    if (list_) return list();
    if (auto ready = prepare(invocation); !ready) {
      print_error(ready.error());
      return kWrongUsage;
    }
    struct sigaction action {};
    action.sa_handler = request_stop;
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGINT, &action, nullptr);
    auto outcome =
        session::stat(options_, stop_requested,
                      [this](double from_s, double seconds, const model::Counts& counts) {
                        show_interval(from_s, seconds, counts);
                      });
    if (!outcome) return print_error(outcome.error());
    show(*outcome);
    return kDone;
  }

 private:
  Result<void> prepare(const Invocation& invocation) {
    if (!invocation.launched_command.empty())
      return fail_with_remedy("assay stat counts running servers; it launches none",
                              "start the server first, then: assay stat --pid PID");
    auto spec = target_.spec({});
    if (!spec) return std::unexpected(spec.error());
    options_.target = *spec;
    auto duration = parse_duration_ns(duration_);
    if (!duration) return std::unexpected(duration.error());
    auto interval = parse_duration_ns(interval_);
    if (!interval) return std::unexpected(interval.error());
    options_.duration_ns = *duration;
    options_.interval_ns = *interval;
    return {};
  }

  int list() {
    model::Counts counts = session::countable_events();
    for (size_t i = 0; i < counts.size(); ++i) {
      say(stdout, "{:26} {}\n", report::counter_name(static_cast<model::CounterId>(i)),
          counts[i].counted ? "yes" : "no: " + counts[i].problem);
    }
    return kDone;
  }

  void show_interval(double from_s, double seconds, const model::Counts& counts) {
    if (json_) {
      say(stdout, "{}\n", report::render_counters_json({seconds, counts}));
      return;
    }
    say(stdout, "{:.1f} s\n{}", from_s, report::render_counters_text({seconds, counts}, style()));
    fflush(stdout);
  }

  void show(const session::StatOutcome& outcome) {
    if (json_) {
      say(stdout, "{}\n", report::render_counters_json({outcome.seconds, outcome.counts}));
      return;
    }
    say(stdout, "{} process{}, {} thread{}, {:.2f} s{}{}\n", outcome.processes,
        outcome.processes == 1 ? "" : "es", outcome.threads, outcome.threads == 1 ? "" : "s",
        outcome.seconds,
        outcome.user_only ? ", user mode only (not permitted to count the kernel)" : "",
        outcome.target_ended ? ", until the target ended" : "");
    std::string idle = analysis::idle_remark(outcome.counts, outcome.seconds);
    if (!idle.empty()) say(stdout, "! {}\n", idle);
    say(stdout, "{}", report::render_counters_text({outcome.seconds, outcome.counts}, style()));
    say(stdout, "  {:26} {:>14}\n  {:26} {:>14}\n", "voluntary switches",
        outcome.voluntary_switches, "involuntary switches", outcome.involuntary_switches);
    say(stdout, "{}", report::render_uncounted(outcome.counts, style()));
    for (const session::ThreadCounts& thread : outcome.per_thread) {
      say(stdout, "\n{} ({})\n{}", report::fitted(thread.name, 40), thread.tid,
          report::render_counters_text({outcome.seconds, thread.counts}, style()));
    }
  }

  static report::Style style() {
    report::Style style;
    style.colour = wants_colour(STDOUT_FILENO);
    return style;
  }

  TargetOptions target_;
  session::StatOptions options_;
  std::string duration_ = "10s";
  std::string interval_ = "0";
  bool list_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_stat_command(CLI::App& app) {
  return std::make_unique<StatCommand>(
      app.add_subcommand("stat", "Count what the hardware and the kernel do for a server"));
}

}  // namespace assay::cli
