#include "capture/heap/trust/kinship.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <sys/stat.h>

#include "capture/heap/injection_plan.h"

namespace assay::capture {
namespace {

constexpr int kMostGenerations = 64;

// What follows "Uid:\t" or another name on its line.
std::optional<std::string> field(const std::string& status, const std::string& name) {
  size_t at = status.starts_with(name) ? 0 : status.find("\n" + name);
  if (at == std::string::npos) return std::nullopt;
  at = status.find(':', at) + 1;
  return status.substr(at, status.find('\n', at) - at);
}

}  // namespace

Result<ProcessFacts> read_process_facts(const os::ProcFs& proc, pid_t pid) {
  auto stat = proc.stat(pid);
  auto status = proc.read(fmt::format("{}/status", pid));
  if (!stat || !status) return fail("process {} is gone", pid);
  ProcessFacts facts;
  facts.pid = pid;
  facts.start_ticks = stat->start_ticks;
  auto users = field(*status, "Uid:"), capabilities = field(*status, "CapPrm:");
  if (!users || !capabilities) return fail("the rights of process {} cannot be seen", pid);
  std::istringstream numbers(*users);
  for (uid_t& user : facts.users) numbers >> user;
  if (!numbers) return fail("the rights of process {} cannot be seen", pid);
  facts.capabilities = std::strtoull(capabilities->c_str(), nullptr, 16);
  const std::array<const char*, 3> kinds{"user", "pid", "mnt"};
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::error_code failed;
    auto link = std::filesystem::read_symlink(
        fmt::format("{}/{}/ns/{}", proc.root(), pid, kinds[i]), failed);
    if (failed) {
      return fail_with_remedy(
          fmt::format("the namespaces of process {} cannot be seen: {}", pid, failed.message()),
          "run as root (sudo assay heap …), or as the user that the server runs as",
          failed.value());
    }
    facts.namespaces[i] = link.string();
  }
  struct stat program {};
  if (::stat(fmt::format("{}/{}/exe", proc.root(), pid).c_str(), &program) == 0) {
    facts.program_device = program.st_dev;
    facts.program_inode = program.st_ino;
  }
  // Read twice: all of it is of one process.
  if (!is_same_process(proc, facts)) return fail("process {} is gone", pid);
  return facts;
}

bool is_same_process(const os::ProcFs& proc, const ProcessFacts& facts) {
  auto stat = proc.stat(facts.pid);
  return stat && stat->start_ticks == facts.start_ticks;
}

Result<void> check_rights(const ProcessFacts& known, const ProcessFacts& other) {
  if (other.namespaces != known.namespaces)
    return fail_with_remedy(
        fmt::format("process {} is in other namespaces than process {}", other.pid, known.pid),
        fmt::format("name it yourself: --pid {}", other.pid));
  uid_t effective = known.users[1];
  if (effective == 0) return {};
  for (uid_t user : other.users) {
    if (user != effective && user != known.users[0])
      return fail_with_remedy(
          fmt::format("process {} is of another user than process {}", other.pid, known.pid),
          fmt::format("name it yourself: --pid {}", other.pid));
  }
  if ((other.capabilities & ~known.capabilities) != 0)
    return fail_with_remedy(
        fmt::format("process {} has capabilities that process {} has not", other.pid, known.pid),
        fmt::format("name it yourself: --pid {}", other.pid));
  return {};
}

Result<void> check_descent(const os::ProcFs& proc, const ProcessFacts& ancestor,
                           const ProcessFacts& other, uint64_t channel_inode) {
  auto stranger = [&] {
    return fail("process {} does not descend from process {}", other.pid, ancestor.pid);
  };
  if (other.start_ticks < ancestor.start_ticks) return stranger();
  pid_t pid = other.pid;
  for (int i = 0; i < kMostGenerations; ++i) {
    auto stat = proc.stat(pid);
    if (!stat || stat->parent <= 1) break;
    pid = stat->parent;
    if (pid == ancestor.pid) {
      if (is_same_process(proc, ancestor)) return {};
      break;
    }
  }
  auto mapped = find_channel(proc, other.pid);
  if (mapped && channel_inode != 0 && mapped->inode == channel_inode &&
      is_same_process(proc, other))
    return {};
  return stranger();
}

}  // namespace assay::capture
