#include "os/process/procfs.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace assay::os {
namespace {

constexpr size_t kSmallFileBytes = 4096;  // stat, schedstat, comm, syscall: one read each
constexpr size_t kWholeFileLimit = size_t{1} << 28;  // a /proc file beyond this is not one
constexpr std::string_view kDeleted = " (deleted)";

// Opens and reads with one read(2): right for files that the kernel produces in one go, and for the
// small files of a fake tree. Threads are polled by the thousand, so nothing here allocates but
// errors.
Result<std::string_view> read_small(const std::string& path, char (&buffer)[kSmallFileBytes]) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open {}", path);
  ssize_t count = 0;
  do {
    count = ::read(fd.get(), buffer, sizeof buffer);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return fail_errno("cannot read {}", path);
  return std::string_view(buffer, static_cast<size_t>(count));
}

Result<std::string> read_whole(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open {}", path);
  std::string content;
  size_t used = 0;
  for (;;) {
    if (content.size() - used < kSmallFileBytes) {
      content.resize(std::max(content.size() * 2, 2 * kSmallFileBytes));
    }
    ssize_t count = ::read(fd.get(), content.data() + used, content.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("cannot read {}", path);
    if (count == 0) break;
    used += static_cast<size_t>(count);
    if (used > kWholeFileLimit) return fail("{} is larger than a file of /proc can be", path);
  }
  content.resize(used);
  return content;
}

Result<std::string> read_link(const std::string& path) {
  char target[PATH_MAX + 16];
  ssize_t count = ::readlink(path.c_str(), target, sizeof target);
  if (count < 0) return fail_errno("cannot read the link {}", path);
  return std::string(target, static_cast<size_t>(count));
}

// Names in a directory that are plain decimal numbers, ascending.
std::vector<int> numbered_entries(const std::string& path) {
  std::vector<int> numbers;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return numbers;
  while (const dirent* entry = ::readdir(directory.get())) {
    std::string_view name(entry->d_name);
    int number = 0;
    auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (status == std::errc() && end == name.data() + name.size() && number >= 0) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Walks the fields of one line. Every step says whether it found what it was asked for.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  template <class Number>
  bool number(Number& value, int base = 10) {
    skip_blanks();
    auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (status != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  // "0x1f", as /proc/PID/syscall prints arguments.
  bool prefixed_hex(uint64_t& value) {
    skip_blanks();
    if (!rest_.starts_with("0x")) return false;
    rest_.remove_prefix(2);
    return number(value, 16);
  }
  bool literal(char expected) {
    if (rest_.empty() || rest_[0] != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view word() {
    skip_blanks();
    size_t length = std::min(rest_.find_first_of(" \t\n"), rest_.size());
    std::string_view found = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return found;
  }
  bool skip_words(int count) {
    while (count-- > 0) {
      if (word().empty()) return false;
    }
    return true;
  }
  std::string_view rest() {
    skip_blanks();
    return rest_;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

bool ticks_to_ns(uint64_t ticks, int64_t& ns) {
  static const int64_t ns_per_tick = kNsPerSecond / ::sysconf(_SC_CLK_TCK);
  return !__builtin_mul_overflow(ticks, ns_per_tick, &ns);
}

// The name stands between the first "(" and the last ")": it may hold both, blanks and newlines.
bool parse_stat_line(std::string_view line, ProcStat& stat) {
  size_t open = line.find('(');
  size_t close = line.rfind(')');
  if (open == line.npos || close == line.npos || close < open) return false;
  if (!Fields(line.substr(0, open)).number(stat.pid)) return false;
  stat.comm = line.substr(open + 1, close - open - 1);
  Fields fields(line.substr(close + 1));
  std::string_view state = fields.word();
  uint64_t utime = 0, stime = 0, cutime = 0, cstime = 0;
  constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD
  uint64_t flags = 0;
  bool good = state.size() == 1 && fields.number(stat.parent) && fields.skip_words(4) &&
              fields.number(flags) && fields.number(stat.minor_faults) && fields.skip_words(1) &&
              fields.number(stat.major_faults) && fields.skip_words(1) && fields.number(utime) &&
              fields.number(stime) && fields.number(cutime) && fields.number(cstime) &&
              fields.skip_words(2) && fields.number(stat.thread_count) && fields.skip_words(1) &&
              fields.number(stat.start_ticks);
  if (!good) return false;
  stat.state = state[0];
  stat.of_kernel = (flags & kKernelThread) != 0;
  int64_t user_ns = 0, kernel_ns = 0;
  good = ticks_to_ns(cutime, user_ns) && ticks_to_ns(cstime, kernel_ns) &&
         !__builtin_add_overflow(user_ns, kernel_ns, &stat.children_ns);
  return good && ticks_to_ns(utime, stat.utime_ns) && ticks_to_ns(stime, stat.stime_ns);
}

void parse_status_line(std::string_view key, std::string_view value, TaskStatus& status) {
  Fields fields(value);
  if (key == "Uid") {
    uid_t real = 0;
    if (fields.number(real) && !fields.number(status.uid)) status.uid = real;
  } else if (key == "Tgid") {
    fields.number(status.tgid);
  } else if (key == "PPid") {
    fields.number(status.parent);
  } else if (key == "TracerPid") {
    fields.number(status.tracer);
  } else if (key == "NSpid") {
    for (pid_t tid = 0; fields.number(tid);) status.namespace_tids.push_back(tid);
  } else if (key == "VmRSS") {
    uint64_t kilobytes = 0;
    if (fields.number(kilobytes) && kilobytes <= UINT64_MAX / 1024) {
      status.rss_bytes = kilobytes * 1024;
    }
  } else if (key == "voluntary_ctxt_switches") {
    fields.number(status.voluntary_switches);
  } else if (key == "nonvoluntary_ctxt_switches") {
    fields.number(status.involuntary_switches);
  } else if (key == "Cpus_allowed_list") {
    status.cpus_allowed = fields.word();
  } else if (key == "Seccomp") {
    fields.number(status.seccomp);
  }
}

// The kernel writes a newline in a path as \012 and escapes nothing else.
std::string unescape_newlines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, 4) == "\\012") {
      plain.push_back('\n');
      at += 4;
    } else {
      plain.push_back(text[at++]);
    }
  }
  return plain;
}

bool parse_permissions(std::string_view text, MapsEntry& entry) {
  auto is = [&](size_t at, char set) { return text[at] == set || text[at] == '-'; };
  if (text.size() != 4 || !is(0, 'r') || !is(1, 'w') || !is(2, 'x')) return false;
  if (text[3] != 'p' && text[3] != 's') return false;
  entry.readable = text[0] == 'r';
  entry.writable = text[1] == 'w';
  entry.executable = text[2] == 'x';
  return true;
}

std::string task_path(pid_t pid, pid_t tid, std::string_view file) {
  return fmt::format("{}/task/{}/{}", pid, tid, file);
}

}  // namespace

std::optional<MapsEntry> parse_maps_line(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  MapsEntry entry;
  Fields fields(line);
  bool good = fields.number(entry.start, 16) && fields.literal('-') &&
              fields.number(entry.end, 16) && parse_permissions(fields.word(), entry) &&
              fields.number(entry.file_offset, 16) && fields.number(entry.dev_major, 16) &&
              fields.literal(':') && fields.number(entry.dev_minor, 16) &&
              fields.number(entry.inode) && entry.start <= entry.end;
  if (!good) return std::nullopt;
  std::string_view path = fields.rest();
  if (path.ends_with(kDeleted)) {
    entry.deleted = true;
    path.remove_suffix(kDeleted.size());
  }
  entry.path = unescape_newlines(path);
  return entry;
}

std::vector<pid_t> ProcFs::pids() const {
  return numbered_entries(root_);
}

std::vector<pid_t> ProcFs::tids(pid_t pid) const {
  return numbered_entries(fmt::format("{}/{}/task", root_, pid));
}

std::vector<int> ProcFs::fds(pid_t pid) const {
  return numbered_entries(fmt::format("{}/{}/fd", root_, pid));
}

Result<ProcStat> ProcFs::parse_stat(const std::string& relative_path) const {
  char buffer[kSmallFileBytes];
  auto text = read_small(root_ + "/" + relative_path, buffer);
  if (!text) return std::unexpected(text.error());
  ProcStat stat;
  if (!parse_stat_line(*text, stat)) {
    return fail("{}/{} does not read like a stat file", root_, relative_path);
  }
  return stat;
}

Result<ProcStat> ProcFs::stat(pid_t pid) const {
  return parse_stat(fmt::format("{}/stat", pid));
}

Result<ProcStat> ProcFs::thread_stat(pid_t pid, pid_t tid) const {
  return parse_stat(task_path(pid, tid, "stat"));
}

Result<SchedStat> ProcFs::thread_schedstat(pid_t pid, pid_t tid) const {
  char buffer[kSmallFileBytes];
  std::string path = root_ + "/" + task_path(pid, tid, "schedstat");
  auto text = read_small(path, buffer);
  if (!text) return std::unexpected(text.error());
  SchedStat schedstat;
  Fields fields(*text);
  if (!fields.number(schedstat.run_ns) || !fields.number(schedstat.run_delay_ns) ||
      !fields.number(schedstat.timeslices)) {
    return fail("{} does not read like a schedstat file", path);
  }
  return schedstat;
}

Result<TaskStatus> ProcFs::parse_status(const std::string& relative_path) const {
  auto text = read(relative_path);
  if (!text) return std::unexpected(text.error());
  TaskStatus status;
  std::string_view rest(*text);
  while (!rest.empty()) {
    size_t length = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    size_t colon = line.find(':');
    if (colon != line.npos)
      parse_status_line(line.substr(0, colon), line.substr(colon + 1), status);
  }
  if (status.tgid == 0) return fail("{}/{} does not read like a status file", root_, relative_path);
  return status;
}

Result<TaskStatus> ProcFs::status(pid_t pid) const {
  return parse_status(fmt::format("{}/status", pid));
}

Result<TaskStatus> ProcFs::thread_status(pid_t pid, pid_t tid) const {
  return parse_status(task_path(pid, tid, "status"));
}

Result<std::vector<MapsEntry>> ProcFs::maps(pid_t pid) const {
  auto text = read(fmt::format("{}/maps", pid));
  if (!text) return std::unexpected(text.error());
  std::vector<MapsEntry> entries;
  std::string_view rest(*text);
  while (!rest.empty()) {
    size_t length = std::min(rest.find('\n'), rest.size());
    if (auto entry = parse_maps_line(rest.substr(0, length))) entries.push_back(std::move(*entry));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  return entries;
}

Result<std::string> ProcFs::exe(pid_t pid) const {
  return read_link(fmt::format("{}/{}/exe", root_, pid));
}

Result<std::string> ProcFs::fd_link(pid_t pid, int fd) const {
  return read_link(fmt::format("{}/{}/fd/{}", root_, pid, fd));
}

Result<std::vector<std::string>> ProcFs::cmdline(pid_t pid) const {
  auto text = read(fmt::format("{}/cmdline", pid));
  if (!text) return std::unexpected(text.error());
  std::vector<std::string> arguments;
  std::string_view rest(*text);
  while (!rest.empty()) {
    size_t length = std::min(rest.find('\0'), rest.size());
    arguments.emplace_back(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  // A process that writes its title over its arguments leaves the rest of the area as empty
  // strings.
  while (arguments.size() > 1 && arguments.back().empty()) arguments.pop_back();
  return arguments;
}

Result<std::string> ProcFs::comm(pid_t pid, pid_t tid) const {
  char buffer[kSmallFileBytes];
  auto text = read_small(root_ + "/" + task_path(pid, tid, "comm"), buffer);
  if (!text) return std::unexpected(text.error());
  if (text->ends_with('\n')) text->remove_suffix(1);
  return std::string(*text);
}

Result<std::optional<SyscallState>> ProcFs::syscall(pid_t pid, pid_t tid) const {
  char buffer[kSmallFileBytes];
  std::string path = root_ + "/" + task_path(pid, tid, "syscall");
  auto text = read_small(path, buffer);
  if (!text) return std::unexpected(text.error());
  if (text->starts_with("running")) return std::optional<SyscallState>();
  SyscallState state;
  Fields fields(*text);
  bool good = fields.number(state.number);
  if (state.number >= 0) {
    for (uint64_t& argument : state.args) good = good && fields.prefixed_hex(argument);
  }
  if (!good || !fields.prefixed_hex(state.sp) || !fields.prefixed_hex(state.ip)) {
    return fail("{} does not read like a syscall file", path);
  }
  return std::optional(state);
}

std::string ProcFs::wchan(pid_t pid, pid_t tid) const {
  char buffer[kSmallFileBytes];
  auto text = read_small(root_ + "/" + task_path(pid, tid, "wchan"), buffer);
  if (!text || *text == "0") return "";
  if (text->ends_with('\n')) text->remove_suffix(1);
  return std::string(*text);
}

Result<std::string> ProcFs::read(const std::string& relative_path) const {
  return read_whole(root_ + "/" + relative_path);
}

std::optional<uint64_t> socket_inode(std::string_view fd_link) {
  constexpr std::string_view kPrefix = "socket:[";
  if (!fd_link.starts_with(kPrefix) || !fd_link.ends_with(']')) return std::nullopt;
  std::string_view digits = fd_link.substr(kPrefix.size(), fd_link.size() - kPrefix.size() - 1);
  uint64_t inode = 0;
  auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), inode);
  if (status != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return inode;
}

}  // namespace assay::os
