// assay rules test RUN: what the rules match in a run. assay rules list: the rules there are.
#include <fmt/format.h>

#include "analysis/rules/rule_matches.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/output/terminal.h"
#include "report/printable.h"
#include "run/reader.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay rules test run.assay               which rules match, and which functions none does\n"
    "  assay rules test run.assay --rules mine  with your own rule files as well\n"
    "  assay rules list                         all rules, with their files";

class RulesCommand final : public Command {
 public:
  explicit RulesCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser
        ->add_option(
            "action", action_,
            "list: print all rules and their files; test: show what the rules match in RUN")
        ->check(CLI::IsMember({"test", "list"}))
        ->type_name("ACTION");
    parser->add_option("run", run_path_, "Run file to test the rules on")->type_name("RUN");
    parser->add_option("--rules", rule_dirs_, "Also use the rule files (*.toml) below DIR")
        ->type_name("DIR");
  }

  int run(const Invocation&) override {
    if (action_.empty()) {
      print_error(Error{"assay rules can list the rules, or test them on a run: say which",
                        "assay rules list, or assay rules test run.assay", 0});
      return kWrongUsage;
    }
    analysis::RuleSet rules = analysis::load_rules(rule_dirs_);
    for (const analysis::RuleError& error : rules.errors) {
      say(stderr, "assay: {}\n", report::printable(error.text()));
    }
    int code = rules.errors.empty() ? kDone : kFailed;
    if (action_ == "list") {
      list(rules);
      return code;
    }
    if (run_path_.empty()) {
      print_error(Error{"rules test needs a run file", "assay rules test RUN", 0});
      return kWrongUsage;
    }
    return confined(reading({run_path_}), [&] { return test(rules, code); });
  }

 private:
  int test(const analysis::RuleSet& rules, int code) const {
    auto reader = run::Reader::open(run_path_);
    if (!reader) return print_error(reader.error());
    auto matches = analysis::match_rules(**reader, rules);
    if (!matches) return print_error(matches.error());
    show(*matches);
    return code;
  }

  static void list(const analysis::RuleSet& rules) {
    for (const auto& rule : rules.categories) {
      say(stdout, "category  {:<40} {}\n", rule.breakdown + "/" + rule.id, rule.origin.file);
    }
    for (const auto& rule : rules.idle) {
      say(stdout, "{:<9} {:<40} {}\n", rule.busy ? "busy" : "idle", rule.id, rule.origin.file);
    }
    for (const auto& rule : rules.detectors) {
      say(stdout, "detector  {:<40} {}\n", rule.id, rule.origin.file);
    }
  }

  static void show(const analysis::RuleMatches& matches) {
    say(stdout, "{:<46}{:>10}{:>9}{:>9}  for example\n", "rule", "functions", "CPU", "waits");
    for (const analysis::RuleMatch& match : matches.matched) {
      say(stdout, "{}{:>10}{:>9}{:>9}  {}\n", report::left(match.rule, 46), match.functions,
          format_percent(match.cpu_share), format_percent(match.wait_share),
          match.examples.empty() ? "" : report::function_name(match.examples[0], 40));
    }
    say(stdout, "\n{} rules matched, {} did not.\n", matches.matched.size(), matches.silent.size());
    say(stdout, "No rule matches {} of the CPU time (the program's own code is not counted):\n",
        format_percent(matches.unclassified_share));
    for (const analysis::Unclassified& row : matches.unclassified) {
      say(stdout, "{:>8}  {}  {}\n", format_percent(row.share),
          report::left(report::function_name(row.function, 60), 60),
          report::fitted(row.module, 30));
    }
  }

  std::string action_;
  std::string run_path_;
  std::vector<std::string> rule_dirs_;
};

}  // namespace

std::unique_ptr<Command> make_rules_command(CLI::App& app) {
  return std::make_unique<RulesCommand>(
      app.add_subcommand("rules", "List the rules, or show what they match in a run"));
}

}  // namespace assay::cli
