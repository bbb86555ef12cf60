#include <algorithm>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/flags/target_options.h"
#include "cli/output/terminal.h"
#include "report/doctor_text.h"
#include "session/doctor/doctor.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay doctor                 what a capture on this machine can and cannot see\n"
    "  assay doctor --port 8000     the same, and what is known of that server's program\n"
    "\n"
    "Exit status 1 when something is missing without which no capture is possible.";

class DoctorCommand final : public Command {
 public:
  explicit DoctorCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    target_.add_to(*parser);
    parser->add_flag("--verbose", verbose_, "Also print the details of a check: the BPF verifier's log");
    parser->add_flag("--json", json_, "Print the checks as JSON");
  }

  int run(const Invocation&) override {
    session::DoctorEnvironment environment;
    environment.self = getpid();
    target::TargetSpec spec;
    if (target_.given()) {
      auto given = target_.spec({});
      if (!given) {
        print_error(given.error());
        return kWrongUsage;
      }
      spec = *given;
    }
    auto checks = session::run_doctor(environment, target_.given() ? &spec : nullptr);
    if (json_) {
      say(stdout, "{}\n", report::doctor_json(checks));
    } else {
      say(stdout, "{}", report::doctor_text(checks, wants_colour(STDOUT_FILENO)));
      if (verbose_) print_logs(checks);
    }
    bool missing = std::ranges::any_of(checks, [](const model::Check& check) {
      return check.status == model::CheckStatus::missing;
    });
    return missing ? kFailed : kDone;
  }

 private:
  static void print_logs(const std::vector<model::Check>& checks) {
    for (const model::Check& check : checks) {
      if (!check.log.empty()) say(stdout, "\n{}:\n{}\n", check.name, check.log);
    }
  }

  TargetOptions target_;
  bool json_ = false;
  bool verbose_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor_command(CLI::App& app) {
  return std::make_unique<DoctorCommand>(app.add_subcommand(
      "doctor", "What this machine allows, and the exact fix for what it does not"));
}

}  // namespace assay::cli
