// The commands of assay. Each adds itself to the parser and keeps its options until it is run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace assay::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

// What stands after "--" on the command line, and the whole line for the run's header.
struct Invocation {
  std::vector<std::string> launched_command;
  std::string command_line;
};

class Command {
 public:
  virtual ~Command() = default;
  CLI::App* parser() const { return parser_; }
  // Runs after parsing; returns the exit code.
  virtual int run(const Invocation& invocation) = 0;

 protected:
  explicit Command(CLI::App* parser) : parser_(parser) {}

 private:
  CLI::App* parser_;
};

std::unique_ptr<Command> make_record_command(CLI::App& app);
std::unique_ptr<Command> make_heap_command(CLI::App& app);
std::unique_ptr<Command> make_report_command(CLI::App& app);
std::unique_ptr<Command> make_diff_command(CLI::App& app);
std::unique_ptr<Command> make_ab_command(CLI::App& app);
std::unique_ptr<Command> make_stat_command(CLI::App& app);
std::unique_ptr<Command> make_view_command(CLI::App& app);
std::unique_ptr<Command> make_rules_command(CLI::App& app);
std::unique_ptr<Command> make_sql_command(CLI::App& app);
std::unique_ptr<Command> make_export_command(CLI::App& app);
std::unique_ptr<Command> make_import_command(CLI::App& app);
std::unique_ptr<Command> make_doctor_command(CLI::App& app);
std::unique_ptr<Command> make_load_command(CLI::App& app);
std::unique_ptr<Command> make_completions_command(CLI::App& app);
std::unique_ptr<Command> make_sweep_command(CLI::App& app);

// Prints "assay: what" and the remedy on stderr; gives kFailed back.
int print_error(const Error& error);

}  // namespace assay::cli
