#include "session/load/load_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "os/text_fields.h"

namespace assay::session {
namespace {

constexpr int64_t kGraceNs = 2 * kNsPerSecond;
constexpr int kPipeBytes = 1 << 20;  // a talkative command must not wait for us

}  // namespace

Result<LoadProcess> LoadProcess::start(
    const std::function<std::vector<std::string>(int report_fd)>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe for the load");
  LoadProcess process;
  process.reports_.reset(ends[0]);
  UniqueFd write_end(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  ::fcntl(write_end.get(), F_SETFD, 0);  // this one, and only this one, goes to the child
  auto launched = os::LaunchedProcess::start(arguments(write_end.get()));
  if (!launched) return std::unexpected(launched.error());
  if (auto released = launched->release(); !released) return std::unexpected(released.error());
  process.launched_ = std::move(*launched);
  process.guard_ = os::GroupGuard(process.launched_->pid());
  return process;
}

LoadProcess& LoadProcess::operator=(LoadProcess&& other) noexcept {
  if (this == &other) return *this;
  stop();
  launched_ = std::move(other.launched_);
  other.launched_.reset();
  guard_ = std::move(other.guard_);
  reports_ = std::move(other.reports_);
  return *this;
}

std::string LoadProcess::read() {
  std::string text;
  char buffer[16384];
  while (true) {
    ssize_t count = ::read(reports_.get(), buffer, sizeof buffer);
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

void LoadProcess::stop() {
  if (!launched_) return;
  pid_t group = launched_->pid();
  launched_->terminate(kGraceNs);
  launched_.reset();
  // What the command left behind is in its group still. (0 would be our own group.)
  if (group > 0) ::kill(-group, SIGKILL);
  guard_.dismiss();
}

int64_t group_cpu_ns(const os::ProcFs& proc, pid_t group) {
  // Fields behind the name: state ppid pgrp …; utime stime cutime cstime are the 12th to 15th.
  constexpr size_t kGroup = 2, kFirstTime = 11, kTimes = 4;
  static const int64_t tick_ns = kNsPerSecond / ::sysconf(_SC_CLK_TCK);
  int64_t ticks = 0;
  for (pid_t pid : proc.pids()) {
    auto text = proc.read(fmt::format("{}/stat", pid));
    size_t name_end = text ? text->rfind(')') : std::string::npos;
    if (name_end == std::string::npos) continue;
    auto fields = os::split_words(std::string_view(*text).substr(name_end + 1));
    if (fields.size() < kFirstTime + kTimes) continue;
    if (os::parse_i64(fields[kGroup]).value_or(0) != group) continue;
    for (size_t i = kFirstTime; i < kFirstTime + kTimes; ++i) {
      ticks += os::parse_i64(fields[i]).value_or(0);
    }
  }
  return ticks * tick_ns;
}

}  // namespace assay::session
