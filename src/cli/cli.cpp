#include "cli/cli.h"

#include <algorithm>
#include <csignal>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/flags/usage.h"
#include "cli/output/terminal.h"
#include "load/secrets.h"
#include "report/printable.h"

namespace assay::cli {
namespace {

constexpr const char* kDescription =
    "assay: what is a server's time made of, what holds it back, what to change first.\n"
    "Point it at a running server under load; half a minute later you know.";

constexpr const char* kExamples =
    "Examples:\n"
    "  assay record --port 8000                 profile the server on port 8000 for 30 s\n"
    "  assay record --name redis-server --for 10s -o redis.assay\n"
    "  assay record -- ./server --threads 4     start a server and profile it until it ends\n"
    "  assay report redis.assay                 read the run again\n"
    "  assay view redis.assay                   look at it in the browser\n"
    "  assay heap --port 8000                   what its memory is made of, and what leaks\n"
    "  assay sql redis.assay \"SELECT * FROM thread\"\n"
    "  assay doctor --port 8000                 what this machine allows, and how to fix the rest\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage; with -- COMMAND, the status of the command.";

// Words as a shell would need them, for the run's header.
std::string quoted_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("-_./:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (i > 0) line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

int explain_unknown_command(const std::string& word,
                            const std::vector<std::unique_ptr<Command>>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) names.push_back(command->parser()->get_name());
  std::string nearest = nearest_name(word, names);
  say(stderr, "assay: there is no command {}\n  try: assay {}\n", report::fitted(word, 60),
      nearest.empty() ? "--help" : nearest);
  return kWrongUsage;
}

}  // namespace

int run(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // `assay report | head` ends quietly: writing fails, and so do we
  Invocation invocation;
  invocation.command_line = load::hide_secrets(quoted_line(argc, argv));  // runs are passed on
  // Everything after "--" belongs to the launched command, whatever it looks like.
  int own = argc;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    own = i;
    invocation.launched_command.assign(argv + i + 1, argv + argc);
    break;
  }

  CLI::App app(kDescription, "assay");
  app.footer(kExamples);
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_record_command(app));
  commands.push_back(make_heap_command(app));
  commands.push_back(make_report_command(app));
  commands.push_back(make_view_command(app));
  commands.push_back(make_export_command(app));
  commands.push_back(make_import_command(app));
  commands.push_back(make_diff_command(app));
  commands.push_back(make_ab_command(app));
  commands.push_back(make_stat_command(app));
  commands.push_back(make_load_command(app));
  commands.push_back(make_sweep_command(app));
  commands.push_back(make_rules_command(app));
  commands.push_back(make_sql_command(app));
  commands.push_back(make_doctor_command(app));
  commands.push_back(make_completions_command(app));
  try {
    app.parse(own, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-')
      return explain_unknown_command(argv[1], commands);
    say(stderr, "assay: {}\n  try: assay {}--help\n", error.what(),
        app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ");
    return kWrongUsage;
  }
  for (const auto& command : commands) {
    if (command->parser()->parsed()) return command->run(invocation);
  }
  say(stdout, "{}", app.help());
  return kDone;
}

}  // namespace assay::cli
