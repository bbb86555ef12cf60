#include <algorithm>
#include <ctime>
#include <filesystem>

#include <unistd.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/group_flag.h"
#include "cli/flags/usage.h"
#include "cli/output/comparison_output.h"
#include "cli/output/terminal.h"
#include "cli/stop_signals.h"
#include "formats/export/output.h"
#include "load/argument_line.h"
#include "session/load/ab.h"
#include "session/record/cache_dir.h"

namespace assay::cli {
namespace {

constexpr int kFrequencyHz = 999;

constexpr const char* kExamples =
    "Examples:\n"
    "  assay ab --load 'http://127.0.0.1:8000/ -c 16' -- ./old --port 8000 -- ./new --port 8000\n"
    "  assay ab --load http://127.0.0.1:8000/ --a './server --pool 4' --b './server --pool 8'\n"
    "  assay ab --load http://127.0.0.1:8000/ --runs 10 --for 5s --format md -o ab-runs \\\n"
    "      --fail-on 'cpu_per_request>+3%' -- ./base/server -- ./head/server\n"
    "\n"
    "Both variants are started in the order A B B A …, driven, recorded and stopped by SIGTERM.\n"
    "The runs, what the servers printed and the comparison stay in the directory. Without --load\n"
    "each command is recorded to its end, or for --for. Exits 3 when a limit of --fail-on is "
    "passed.";

std::string default_directory() {
  char stamp[32];
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(stamp, sizeof stamp, "ab-%Y%m%d-%H%M%S", &local);
  return stamp;
}

class AbCommand final : public Command {
 public:
  explicit AbCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    // Both variants pay for it alike, and a function's share of short runs needs the samples.
    options_.record.frequency_hz = kFrequencyHz;
    parser->add_option("--a", a_, "First variant as one line of words, instead of -- CMD_A")
        ->type_name("CMD");
    parser->add_option("--b", b_, "Second variant, instead of -- CMD_B")->type_name("CMD");
    parser
        ->add_option("--load", options_.record.load.what,
                     "Drive the server: 'URL [options of assay load]', or a shell command")
        ->type_name("LOAD");
    parser->add_option("--runs", options_.runs, "Runs of each variant (default 10)")
        ->check(whole_number(1, 1000))
        ->type_name("N");
    parser
        ->add_option("--for", duration_,
                     "How long each capture lasts (default 5s; without --load to the end)")
        ->type_name("TIME");
    parser->add_option("--warmup", warmup_, "Load before each capture (default 1s)")
        ->type_name("TIME");
    parser
        ->add_option("--ready", options_.record.load.ready_url,
                     "Wait until this URL answers well (default: the load's own URL)")
        ->type_name("URL");
    parser
        ->add_option("--ready-port", options_.record.load.ready_port,
                     "When --load is a command: wait until a process listens on this port")
        ->check(whole_number(1, 65535))
        ->type_name("PORT");
    parser
        ->add_option("--ready-timeout", ready_timeout_,
                     "How long to wait until it is ready (default 30s)")
        ->type_name("TIME");
    parser
        ->add_option("--freq", options_.record.frequency_hz,
                     "On-CPU samples per second and CPU (default 999)")
        ->check(whole_number(1, 100000))
        ->type_name("HZ");
    parser
        ->add_option("--per", per_,
                     "Compare per request, second, share or run (default: request with load, run "
                     "for commands "
                     "that end)")
        ->check(CLI::IsMember({"request", "second", "share", "run"}))
        ->type_name("UNIT");
    parser->add_option("--format", format_, "text, md, json, html or svg (default text)")
        ->check(CLI::IsMember({"text", "md", "json", "html", "svg"}))
        ->type_name("FORMAT");
    parser->add_option("--fail-on", fail_on_, "Exit 3 when a measure changed by more than this")
        ->type_name("LIMIT");
    parser
        ->add_option("-o,--output", options_.directory, "Directory for the runs (default ab-DATE)")
        ->type_name("DIR");
    parser->add_flag("--overwrite", options_.record.overwrite, "Replace run files that exist");
    parser->add_flag("-q,--quiet", quiet_, "No progress");
    add_group_flag(*parser);
  }

  int run(const Invocation& invocation) override {
    auto limits = parse_limits(fail_on_);
    if (!limits) return print_error(limits.error()), kWrongUsage;
    if (auto ready = prepare(invocation); !ready) return print_error(ready.error()), kWrongUsage;
    std::error_code error;
    std::filesystem::create_directories(options_.directory, error);
    if (error)
      return print_error({fmt::format("cannot make {}: {}", options_.directory, error.message()),
                          "", error.value()});
    install_stop_signals();
    std::vector<std::string> paths[2];
    auto recorded = record(paths);
    int code = recorded ? kDone : print_error(recorded.error());
    if (paths[0].empty() || paths[1].empty()) {
      if (recorded) print_error({"stopped before there was one run of each variant", "", 0});
      return kFailed;
    }
    if (stop_requested()) {
      say(stderr, "assay: stopped; the runs that were finished are compared\n");
      // Fewer runs than were asked for show less: they must not pass for a comparison in CI.
      if (!limits->empty()) code = kFailed;
    }
    std::vector<std::string> runs = paths[0];
    runs.insert(runs.end(), paths[1].begin(), paths[1].end());
    session::Confinement rights = reading(runs);
    rights.files.output_folders.push_back(options_.directory);
    int judged = confined(rights, [&] { return conclude(paths, *limits); });
    return judged == kFailedOn || code == kDone ? judged : code;
  }

 private:
  Result<void> prepare(const Invocation& invocation) {
    if (auto commands = take_commands(invocation.launched_command); !commands) return commands;
    session::RecordOptions& record = options_.record;
    bool driven = !record.load.what.empty();
    if (!driven && (!record.load.ready_url.empty() || record.load.ready_port != 0))
      return fail("--ready and --ready-port go with --load");
    std::string duration = !duration_.empty() ? duration_ : driven ? "5s" : "0";
    std::string warmup = !warmup_.empty() ? warmup_ : driven ? "1s" : "0";
    for (auto [text, into] :
         {std::pair{&duration, &record.duration_ns}, std::pair{&warmup, &record.warmup_ns},
          std::pair{&ready_timeout_, &record.load.ready_timeout_ns}}) {
      auto parsed = parse_duration_ns(*text);
      if (!parsed) return std::unexpected(parsed.error());
      *into = *parsed;
    }
    if (!duration_.empty() && record.duration_ns == 0) return fail("--for 0 would record nothing");
    record.command_line = invocation.command_line;
    record.cache_dir = session::default_cache_dir();
    record.reader_program = session::kOwnProgram;
    if (options_.directory.empty()) options_.directory = default_directory();
    return {};
  }

  Result<void> take_commands(const std::vector<std::string>& words) {
    const char* remedy = "assay ab --load URL -- CMD_A -- CMD_B, or --a 'CMD_A' --b 'CMD_B'";
    if (!a_.empty() || !b_.empty()) {
      if (!words.empty() || a_.empty() || b_.empty())
        return fail_with_remedy(
            "give both variants in the same way: both after --, or both with --a and --b", remedy);
      for (int i : {0, 1}) {
        auto split = load::split_arguments(i == 0 ? a_ : b_);
        if (!split) return std::unexpected(split.error());
        options_.commands[i] = std::move(*split);
      }
    } else {
      auto middle = std::ranges::find(words, "--");
      if (middle == words.end())
        return fail_with_remedy("two variants are needed, each after a --", remedy);
      options_.commands[0].assign(words.begin(), middle);
      options_.commands[1].assign(middle + 1, words.end());
      if (std::ranges::find(options_.commands[1], "--") != options_.commands[1].end())
        return fail_with_remedy(
            "there are more than two --: a variant that contains -- must be in quotes",
            "--a 'CMD_A -- …' --b 'CMD_B -- …'");
    }
    if (options_.commands[0].empty() || options_.commands[1].empty())
      return fail_with_remedy("a variant is empty", remedy);
    return {};
  }

  Result<void> record(std::vector<std::string> (&paths)[2]) {
    ProgressLine line(!quiet_);
    size_t done = 0;
    return session::ab(
        options_, stop_requested(),
        [&](const session::AbRun& run, const session::RecordProgress& state) {
          line.show(fmt::format(
              "{} of {}: variant {}, {}{}", done + 1, 2 * options_.runs,
              run.variant == 0 ? "A" : "B", phase_text(state.phase),
              state.samples > 0 ? fmt::format(", {} samples", format_count(state.samples)) : ""));
        },
        [&](const session::AbRun& run) {
          ++done;
          paths[run.variant].push_back(run.run_path);
        });
  }

  int conclude(const std::vector<std::string> (&paths)[2], const std::vector<ChangeLimit>& limits) {
    auto compared = compare_files(paths[0], paths[1], per_);
    if (!compared) return print_error(compared.error());
    for (const char* format : {"text", "md", "json", "html", "svg"}) {
      std::string extension = std::string(format) == "text" ? "txt" : format;
      auto written = formats::write_whole(fmt::format("{}/comparison.{}", options_.directory, extension),
                                render(*compared, format, false));
      if (!written) return print_error(written.error());
    }
    if (!write_out(stdout, render(*compared, format_, wants_colour(STDOUT_FILENO)))) return kFailed;
    if (!quiet_)
      say(stderr, "{} and {} runs, and the comparison: {}\n", paths[0].size(), paths[1].size(),
          options_.directory);
    return judge_limits(compared->comparison, limits);
  }

  session::AbOptions options_;
  std::string a_, b_, duration_, warmup_, ready_timeout_ = "30s", per_, format_ = "text";
  std::vector<std::string> fail_on_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ab_command(CLI::App& app) {
  return std::make_unique<AbCommand>(app.add_subcommand(
      "ab", "Start two variants in turns, record each under load, and compare them"));
}

}  // namespace assay::cli
