#include "cli/flags/target_options.h"

#include <fmt/ranges.h>

#include "cli/flags/usage.h"

namespace assay::cli {

void TargetOptions::add_to(CLI::App& parser) {
  constexpr const char* kGroup = "Target (choose one)";
  parser.add_option("--pid", spec_.pids, "Process id; several may be given")
      ->check(whole_number(1, 4194304))
      ->type_name("PID")
      ->group(kGroup);
  parser.add_option("--name", spec_.name, "Name of the process or of its program file")
      ->type_name("NAME")
      ->group(kGroup);
  parser.add_option("--exe", spec_.exe, "Program file")->type_name("PATH")->group(kGroup);
  parser.add_option("--port", spec_.port, "The process that listens on this TCP port")
      ->check(whole_number(1, 65535))
      ->type_name("PORT")
      ->group(kGroup);
  parser.add_option("--cgroup", spec_.cgroup, "Everything in a cgroup (a container, a service)")
      ->type_name("PATH")
      ->group(kGroup);
  parser.add_flag("--no-children", no_children_, "Leave out child processes")->group(kGroup);
}

bool TargetOptions::given() const {
  return !spec_.pids.empty() || !spec_.name.empty() || !spec_.exe.empty() || spec_.port != 0 ||
         !spec_.cgroup.empty();
}

Result<target::TargetSpec> TargetOptions::spec(const std::vector<std::string>& command) const {
  int chosen = !spec_.pids.empty() + !spec_.name.empty() + !spec_.exe.empty() + (spec_.port != 0) +
               !spec_.cgroup.empty() + !command.empty();
  if (chosen == 0) {
    return fail_with_remedy(
        "no target given",
        "--port 8000, --name NAME, --pid N, --exe PATH, --cgroup PATH, or -- COMMAND");
  }
  if (chosen > 1)
    return fail(
        "more than one kind of target given: choose one of --pid, --name, --exe, --port, --cgroup "
        "and -- COMMAND");
  target::TargetSpec spec = spec_;
  spec.command = command;
  spec.include_children = !no_children_;
  return spec;
}

std::string TargetOptions::text(const std::vector<std::string>& command) const {
  if (!command.empty()) return fmt::format("-- {}", fmt::join(command, " "));
  if (!spec_.pids.empty()) return fmt::format("--pid {}", fmt::join(spec_.pids, ","));
  if (!spec_.name.empty()) return "--name " + spec_.name;
  if (!spec_.exe.empty()) return "--exe " + spec_.exe;
  if (spec_.port != 0) return fmt::format("--port {}", spec_.port);
  return "--cgroup " + spec_.cgroup;
}

}  // namespace assay::cli
