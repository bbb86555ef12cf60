#include <set>

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "os/process/binary_facts.h"
#include "os/machine/users.h"
#include "session/doctor/doctor.h"
#include "target/describe.h"
#include "target/roles.h"

namespace assay::session {
namespace {

using model::Check;
using model::CheckStatus;
using target::printable;
using target::ResolvedProcess;

constexpr size_t kMostPrograms = 8;

Check check_found(const target::ResolvedTarget& target) {
  size_t threads = 0;
  for (const ResolvedProcess& process : target.processes) threads += process.threads.size();
  const ResolvedProcess& main = target.main();
  return {"target", CheckStatus::ok,
          fmt::format("{} (pid {}): {} process{}, {} thread{}", printable(main.exe), main.pid,
                      target.processes.size(), target.processes.size() == 1 ? "" : "es", threads,
                      threads == 1 ? "" : "s"),
          "", ""};
}

// What a capture reads of a process: its mappings for names, its system calls for open waits.
Check check_access(const ResolvedProcess& process, const os::ProcFs& proc,
                   const os::Capabilities& machine) {
  std::string who = process.uid == machine.uid
                        ? "same user"
                        : fmt::format("runs as {}, Assay as {}", os::user_name(process.uid),
                                      os::user_name(machine.uid));
  std::string remedy = fmt::format("sudo assay doctor --pid {}", process.pid);
  if (auto maps = proc.maps(process.pid); !maps) {
    return {"access", CheckStatus::missing, fmt::format("{}; {}", who, maps.error().what),
            "its mappings cannot be read: no names and no complete stacks", remedy};
  }
  auto call = proc.syscall(process.pid, process.pid);
  bool denied = !call && (call.error().code == EPERM || call.error().code == EACCES);
  if (denied) {
    return {"access", CheckStatus::limited, who + "; mappings can be read, system calls cannot",
            "waits that were open before the capture have no system call", remedy};
  }
  return {"access", CheckStatus::ok, who + "; mappings and system calls can be read", "", ""};
}

Check check_tracer(const ResolvedProcess& process, const os::ProcFs& proc) {
  auto status = proc.status(process.pid);
  pid_t tracer = status ? status->tracer : 0;
  if (tracer == 0) return {"tracer", CheckStatus::ok, "no debugger or strace is attached", "", ""};
  auto comm = proc.comm(tracer, tracer);
  return {"tracer", CheckStatus::limited,
          fmt::format("{} (pid {}) is attached", comm ? printable(*comm) : "a tracer", tracer),
          "the target stops for it: times are the tracer's as much as the server's",
          fmt::format("end it, for example: kill {}", tracer)};
}

Check check_image(const ResolvedProcess& process, const os::ProcFs& proc) {
  const std::string name = "program file";
  auto image = os::read_running_image(process.pid, proc);
  if (!image) {
    return {name, CheckStatus::limited, printable(image.error().what), "its names may be missing",
            ""};
  }
  std::string path = printable(image->path);
  const std::string cost = "source lines may not match what runs";
  if (image->replaced) {
    return {name, CheckStatus::limited, path + " was rebuilt or replaced after the server started",
            cost, "restart the server, then capture"};
  }
  if (image->deleted) {
    return {name, CheckStatus::limited, path + " was removed after the server started", cost,
            "restart the server from a file that stays"};
  }
  return {name, CheckStatus::ok, path + " is what runs", "", ""};
}

// Debian's place for debug information that was split off: /usr/lib/debug/.build-id/ab/cdef….debug
bool has_separate_debug_file(const std::string& build_id) {
  if (build_id.size() < 3) return false;
  std::string path = fmt::format("/usr/lib/debug/.build-id/{}/{}.debug", build_id.substr(0, 2),
                                 build_id.substr(2));
  return ::access(path.c_str(), R_OK) == 0;
}

Check check_symbols(const os::BinaryFacts& facts, const std::string& program) {
  const std::string name = "symbols of " + program;
  std::string id =
      facts.build_id.empty() ? "no build id" : "build id " + facts.build_id.substr(0, 12);
  if (facts.has_debug_info || has_separate_debug_file(facts.build_id)) {
    const char* where = facts.has_debug_info ? "in the file" : "in a separate file";
    return {name, CheckStatus::ok, fmt::format("debug information {}, {}", where, id), "", ""};
  }
  if (facts.has_symtab) {
    return {name, CheckStatus::limited, "function names, no debug information, " + id,
            "no source lines and no inlined functions", "build with -g (it costs no speed)"};
  }
  std::string cost =
      facts.has_dynsym ? "only exported functions have names" : "no function has a name";
  std::string remedy = "do not strip it, and build with -g";
  if (facts.has_debug_link) remedy = "install its debug symbols (Debian: the package's -dbgsym)";
  return {name, CheckStatus::limited, "stripped, " + id, cost, remedy};
}

Check check_build(const os::BinaryFacts& facts, const std::string& program) {
  const std::string name = "build of " + program;
  const std::string cost = "its profile is not that of a release build";
  if (!facts.sanitizers.empty()) {
    return {name, CheckStatus::limited,
            fmt::format("sanitizers: {}", fmt::join(facts.sanitizers, ", ")), cost,
            "profile a build without -fsanitize"};
  }
  if (facts.optimisation == os::Optimisation::debug || facts.debug_containers) {
    return {name, CheckStatus::limited,
            facts.debug_containers ? "debug containers (_GLIBCXX_DEBUG)" : "not optimised", cost,
            "build with -O2 -g (CMake: -DCMAKE_BUILD_TYPE=RelWithDebInfo)"};
  }
  bool known = facts.optimisation == os::Optimisation::optimised;
  return {
      name, CheckStatus::ok,
      fmt::format(
          "{}, frame pointers {} (not needed: stacks are unwound from the program's own tables)",
          known ? "optimised" : "no sign of a debug build",
          os::frame_pointers_name(facts.frame_pointers)),
      "", ""};
}

}  // namespace

std::vector<Check> check_target(const target::ResolvedTarget& target, const os::ProcFs& proc,
                                const os::Capabilities& machine) {
  std::vector<Check> checks{check_found(target), check_access(target.main(), proc, machine),
                            check_tracer(target.main(), proc), check_image(target.main(), proc)};
  std::set<std::string> seen;
  for (const ResolvedProcess& process : target.processes) {
    if (!seen.insert(process.exe).second || seen.size() > kMostPrograms) continue;
    std::string program = printable(target::program_name(process.exe));
    UniqueFd fd(
        ::open(fmt::format("{}/{}/exe", proc.root(), process.pid).c_str(), O_RDONLY | O_CLOEXEC));
    auto facts = fd.valid() ? os::read_binary_facts(fd.get())
                            : Result<os::BinaryFacts>(fail_errno("{} cannot be opened", program));
    if (!facts) {
      checks.push_back({"symbols of " + program, CheckStatus::missing, facts.error().what,
                        "no function has a name",
                        fmt::format("sudo assay doctor --pid {}", process.pid)});
      continue;
    }
    checks.push_back(check_symbols(*facts, program));
    checks.push_back(check_build(*facts, program));
  }
  return checks;
}

}  // namespace assay::session
