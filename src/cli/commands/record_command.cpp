#include <algorithm>
#include <atomic>
#include <filesystem>

#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/capture_flags.h"
#include "cli/flags/usage.h"
#include "cli/output/out_dir.h"
#include "cli/output/progress_text.h"
#include "cli/output/terminal.h"
#include "cli/stop_signals.h"
#include "run/reader.h"
#include "session/record/recorder.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay record --port 8000                          30 s of the server on port 8000\n"
    "  assay record --name redis-server --for 10s -o redis.assay\n"
    "  assay record --pid 4711 --freq 499 --for 5s       one process, sampled more often\n"
    "  assay record --cgroup system.slice/web.service    a whole service\n"
    "  assay record -- ./server --threads 4              start it and profile it to its end\n"
    "  assay record --port 8000 --load 'http://127.0.0.1:8000/ -c 50'    and drive it meanwhile\n"
    "  assay record --port 8000 --load 'wrk -t1 -c50 -d60 http://127.0.0.1:8000/'\n"
    "  assay record --port 8000 --heap                   and sample what it allocates\n"
    "  assay record --load http://127.0.0.1:8000/ --for 10s -- ./server  start, drive, stop it\n"
    "\n"
    "Ctrl-C ends the capture early and keeps everything. The report is printed at the end; the "
    "run\n"
    "file can be read again with `assay report` and `assay sql`.";

// For tests and bench/bpf_truth: ASSAY_BPF_CHECK=report,cache,truth makes the BPF backend check
// itself and tell what it counted.
session::BpfCheck wanted_check(std::string_view text) {
  session::BpfCheck check;
  check.cache = text.find("cache") != std::string_view::npos;
  if (text.find("truth") != std::string_view::npos) check.truth_one_in = 1;
  return check;
}

class RecordCommand final : public Command {
 public:
  explicit RecordCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    flags_.add_target(*parser);
    parser
        ->add_option("--for", duration_,
                     "How long: 500ms, 30s, 2m (default 30s; with -- until the command ends)")
        ->type_name("TIME");
    parser
        ->add_option("--warmup", warmup_,
                     "Wait this long before the capture begins (default 0; with --load 1s)")
        ->type_name("TIME");
    parser
        ->add_option(
            "--load", options_.load.what,
            "Drive the server meanwhile: 'URL [options of assay load]', or a shell command")
        ->type_name("LOAD");
    parser
        ->add_option("--ready", options_.load.ready_url,
                     "With --load: wait until this URL answers well (default: the load's own URL)")
        ->type_name("URL");
    parser
        ->add_option("--ready-timeout", ready_timeout_,
                     "How long to wait until it is ready (default 30s)")
        ->type_name("TIME");
    parser->add_option("--freq", frequency_, "On-CPU samples per second and CPU (default 99)")
        ->check(whole_number(1, 100000))
        ->type_name("HZ");
    flags_.add_output(*parser);
    parser
        ->add_option(
            "--out-dir", out_dir_,
            "Write run.assay, the report, and flame graphs and folded stacks of each process "
            "into this directory")
        ->type_name("DIR");
    parser
        ->add_option("--backend", backend_,
                     "How events are recorded: auto (default: bpf where it may be used), bpf, perf")
        ->check(CLI::IsMember({"auto", "bpf", "perf"}))
        ->type_name("BACKEND");
    parser->add_flag("--heap", heap_, "Sample allocations as well: what lives, what leaks");
    parser
        ->add_option("--heap-rate", heap_rate_,
                     "With --heap: mean bytes between sampled allocations (default 512k)")
        ->type_name("BYTES");
    parser->add_flag(
        "--counters", options_.counters,
        "Also count cycles, instructions, branches and caches; context switches then cost more");
    parser->add_flag("--no-wakeups", no_wakeups_,
                     "Do not trace wake-ups: cheaper on very switch-heavy servers");
    parser->add_flag(
        "--per-task", options_.per_task,
        "Follow the target's threads instead of all CPUs: for machines with busy neighbours");
    parser->add_flag("--unprivileged", options_.unprivileged,
                     "Capture as an ordinary user would, even as root");
    flags_.add_rest(*parser);
  }

  int run(const Invocation& invocation) override {
    if (auto ready = prepare(invocation); !ready) {
      print_error(ready.error());
      return kWrongUsage;
    }
    install_stop_signals();
    ProgressLine line(!flags_.quiet());
    auto outcome = session::record(
        options_, stop_requested(),
        [&](const session::RecordProgress& state) { line.show(progress_text(state)); });
    line.clear();
    if (!outcome) return print_error(outcome.error());
    return conclude(*outcome);
  }

 private:
  Result<void> prepare(const Invocation& invocation) {
    if (auto filled = flags_.fill(invocation, options_); !filled) return filled;
    bool driven = !options_.load.what.empty();
    bool to_its_end = !options_.target.command.empty() && !driven;  // a server under load has none
    std::string duration = duration_.empty() ? (to_its_end ? "0" : "30s") : duration_;
    auto duration_ns = parse_duration_ns(duration);
    if (!duration_ns) return std::unexpected(duration_ns.error());
    auto warmup_ns = parse_duration_ns(!warmup_.empty() ? warmup_ : driven ? "1s" : "0");
    if (!warmup_ns) return std::unexpected(warmup_ns.error());
    auto ready_ns = parse_duration_ns(ready_timeout_);
    if (!ready_ns) return std::unexpected(ready_ns.error());
    if (!driven && !options_.load.ready_url.empty()) return fail("--ready goes with --load");
    options_.load.ready_timeout_ns = *ready_ns;
    options_.load.ready_port = options_.target.port;
    if (!duration_.empty() && *duration_ns == 0) return fail("--for 0 would record nothing");
    options_.duration_ns = *duration_ns;
    options_.warmup_ns = *warmup_ns;
    options_.frequency_hz = frequency_;
    options_.backend = backend_ == "bpf"    ? session::Backend::bpf
                       : backend_ == "perf" ? session::Backend::perf
                                            : session::Backend::automatic;
    options_.wakeups = !no_wakeups_;
    if (heap_) {
      auto rate = parse_byte_size(heap_rate_);
      if (!rate) return std::unexpected(rate.error());
      options_.heap = session::HeapSampling{};
      options_.heap->rate_bytes = *rate;
      options_.heap->alone = false;
    }
    if (const char* check = getenv("ASSAY_BPF_CHECK")) options_.bpf_check = wanted_check(check);
    if (!out_dir_.empty()) {
      std::error_code error;
      std::filesystem::create_directories(out_dir_, error);
      if (error) return fail("cannot make {}: {}", out_dir_, error.message());
      if (!flags_.names_output()) options_.output = out_dir_ + "/run.assay";
    }
    return {};
  }

  int conclude(const session::RecordOutcome& outcome) {
    int code = outcome.launched_exit ? outcome.launched_exit->exit_code() : kDone;
    if (outcome.write_error) code = print_error(*outcome.write_error);
    if (!out_dir_.empty()) {
      session::Confinement rights = reading({options_.output});
      rights.files.output_folders.push_back(out_dir_);
      int written = confined(rights, [this] { return fill_out_dir(); });
      if (code == kDone) code = written;
    }
    if (getenv("ASSAY_BPF_CHECK") != nullptr) say(stderr, "{}", session::to_text(outcome.bpf));
    if (!flags_.quiet()) {
      int shown = confined(reading({options_.output}), [this] {
        auto report = flags_.conclude(options_.output);
        return report ? kDone : print_error(report.error());
      });
      if (code == kDone) code = shown;
      flags_.show_end(options_.output, outcome.holds);
    }
    return code;
  }

  int fill_out_dir() {
    auto reader = run::Reader::open(options_.output);
    if (!reader) return print_error(reader.error());
    auto paths = write_out_dir(**reader, options_.output, out_dir_);
    if (!paths) return print_error(paths.error());
    if (!flags_.quiet()) say(stderr, "{} files in {}\n", paths->size() + 1, out_dir_);
    return kDone;
  }

  CaptureFlags flags_;
  session::RecordOptions options_;
  std::string duration_;
  std::string warmup_;
  std::string ready_timeout_ = "30s";
  std::string out_dir_;
  std::string backend_ = "auto";
  std::string heap_rate_ = "512k";
  int frequency_ = 99;
  bool heap_ = false;
  bool no_wakeups_ = false;
};

}  // namespace

std::unique_ptr<Command> make_record_command(CLI::App& app) {
  return std::make_unique<RecordCommand>(
      app.add_subcommand("record", "Capture a server's on-CPU and off-CPU time in one pass"));
}

}  // namespace assay::cli
