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
    "  assay stat --port 8000 --load 'http://127.0.0.1:8000/ -c 16'    counts per request\n"
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
    parser
        ->add_option(
            "--load", options_.load.what,
            "Drive the server meanwhile: 'URL [options of assay load]'; counts per request")
        ->type_name("LOAD");
    parser->add_flag("--no-syscalls", no_syscalls_,
                     "Do not count system calls: they cost 0.1 µs each while it counts");
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
    options_.syscalls = !no_syscalls_;
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

  void show_interval(double from_s, double seconds, const model::Counts& counts) {
    if (json_) {
      say(stdout, "{}\n", report::render_counters_json({seconds, counts}));
      return;
    }
    say(stdout, "{:.1f} s\n{}", from_s, report::render_counters_text({seconds, counts}, style()));
    fflush(stdout);
  }

  void show(const session::StatOutcome& outcome) {
    report::CountedBesides besides{outcome.top_down, outcome.syscalls, {}, outcome.syscall_source};
    for (const session::SyscallRate& call : outcome.by_syscall)
      besides.by_syscall.push_back({call.name, call.calls});
    report::CountersShown shown{outcome.seconds, outcome.counts, outcome.requests, &besides};
    if (json_) {
      say(stdout, "{}\n", report::render_counters_json(shown));
      if (!outcome.no_requests.empty()) say(stderr, "assay: {}\n", outcome.no_requests);
      return;
    }
    say(stdout, "{} process{}, {} thread{}, {:.2f} s{}{}\n", outcome.processes,
        outcome.processes == 1 ? "" : "es", outcome.threads, outcome.threads == 1 ? "" : "s",
        outcome.seconds,
        outcome.user_only ? ", user mode only (not permitted to count the kernel)" : "",
        outcome.target_ended ? ", until the target ended" : "");
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
  bool no_syscalls_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_stat_command(CLI::App& app) {
  return std::make_unique<StatCommand>(
      app.add_subcommand("stat", "Count what the hardware and the kernel do for a server"));
}

}  // namespace assay::cli
