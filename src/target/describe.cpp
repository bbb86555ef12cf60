#include "target/describe.h"

#include <algorithm>
#include <map>

#include <unistd.h>

#include "base/units.h"
#include "os/machine/users.h"
#include "target/match.h"

namespace assay::target {
namespace {

constexpr size_t kMostPorts = 6;
constexpr size_t kMostCandidates = 12;

std::string age(uint64_t start_ticks) {
  int64_t ns_per_tick = kNsPerSecond / ::sysconf(_SC_CLK_TCK);
  TimeNs started_ns = 0;
  if (__builtin_mul_overflow(start_ticks, ns_per_tick, &started_ns)) return "at an unknown time";
  int64_t seconds = std::max<int64_t>(0, boottime_ns() - started_ns) / kNsPerSecond;
  constexpr int64_t kSecondsPerMinute = 60;
  if (seconds < kSecondsPerMinute) return fmt::format("{} s ago", seconds);
  if (seconds < 2 * kSecondsPerMinute)
    return fmt::format("1 m {:02} s ago", seconds % kSecondsPerMinute);
  return format_duration(seconds * kNsPerSecond) + " ago";
}

// ", port 6379" or ", ports 80, 443" of a process that listens.
std::string ports_text(const std::map<uint16_t, pid_t>& ports, pid_t pid) {
  std::vector<uint16_t> own;
  for (const auto& [port, holder] : ports) {
    if (holder == pid) own.push_back(port);
  }
  if (own.empty()) return "";
  if (own.size() > kMostPorts) own.resize(kMostPorts);
  return fmt::format(", {} {}", own.size() == 1 ? "port" : "ports", fmt::join(own, ", "));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown.push_back(c);
    }
  }
  return shown;
}

std::string shell_word(const std::string& text) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=+@%,").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted.push_back(c);
    }
  }
  return printable(quoted + "'");
}

std::string describe(const TargetSpec& spec) {
  std::vector<std::string> words;
  for (pid_t pid : spec.pids) words.push_back(fmt::format("--pid {}", pid));
  if (!spec.name.empty()) words.push_back("--name " + shell_word(spec.name));
  if (!spec.exe.empty()) words.push_back("--exe " + shell_word(spec.exe));
  if (spec.port != 0) words.push_back(fmt::format("--port {}", spec.port));
  if (!spec.cgroup.empty()) words.push_back("--cgroup " + shell_word(spec.cgroup));
  if (!spec.include_children) words.push_back("--no-children");
  if (!spec.command.empty()) words.push_back("--");
  for (const std::string& argument : spec.command) words.push_back(shell_word(argument));
  return fmt::format("{}", fmt::join(words, " "));
}

std::string candidate_lines(const ProcessTable& table, const os::ProcFs& proc,
                            const std::vector<pid_t>& pids) {
  std::string lines;
  PortMatch listeners = match_port(table, proc, 0);
  for (size_t index = 0; index < std::min(pids.size(), kMostCandidates); ++index) {
    const ProcessEntry* entry = table.find(pids[index]);
    if (!entry) continue;
    auto status = proc.status(entry->pid);
    lines += fmt::format("\n  pid {:<7} {}  user {}, started {}{}", entry->pid,
                         printable(entry->exe.empty() ? "(" + entry->comm + ")" : entry->exe),
                         status ? os::user_name(status->uid) : "unknown", age(entry->start_ticks),
                         ports_text(listeners.ports, entry->pid));
  }
  if (pids.size() > kMostCandidates) {
    lines += fmt::format("\n  and {} more", pids.size() - kMostCandidates);
  }
  return lines;
}

}  // namespace assay::target
