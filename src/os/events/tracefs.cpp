#include "os/events/tracefs.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace assay::os {
namespace {

constexpr const char* kMountPoints[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
constexpr size_t kMaxFormatBytes = 64 * 1024;

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while (text.size() < kMaxFormatBytes && (got = ::read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// Runs in the child: only async-signal-safe calls, since the parent may have threads.
[[noreturn]] void print_from_private_mount(const char* path, int out) {
  bool ready = unshare(CLONE_NEWNS) == 0 &&
               mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount("tracefs", kMountPoints[0], "tracefs", 0, nullptr) == 0;
  if (ready) {
    int in = ::open(path, O_RDONLY | O_CLOEXEC);
    char buffer[4096];
    ssize_t got = 0;
    while (in >= 0 && (got = ::read(in, buffer, sizeof buffer)) > 0) {
      if (::write(out, buffer, static_cast<size_t>(got)) != got) break;
    }
  }
  _exit(0);
}

Result<std::string> read_through_private_mount(const std::string& name) {
  std::string path = std::string(kMountPoints[0]) + "/events/" + name + "/format";
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  pid_t child = fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) print_from_private_mount(path.c_str(), out.get());
  out.reset();
  std::string text = read_all(in.get());
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (text.empty()) {
    return fail_with_remedy("tracefs is not mounted",
                            "sudo mount -t tracefs tracefs /sys/kernel/tracing");
  }
  return text;
}

// The number after `key` in `text`, as in "offset:24;".
uint32_t number_after(std::string_view text, std::string_view key) {
  uint32_t value = 0;
  size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const char* begin = text.data() + at + key.size();
  while (begin < text.data() + text.size() && *begin == ' ') ++begin;
  std::from_chars(begin, text.data() + text.size(), value);
  return value;
}

// "pid" of "field:pid_t pid;", "comm" of "field:char comm[16];".
std::string field_name(std::string_view declaration) {
  size_t end = declaration.find_first_of("[;");
  declaration = declaration.substr(0, end);
  size_t space = declaration.find_last_of(" \t*");
  return std::string(space == std::string_view::npos ? declaration : declaration.substr(space + 1));
}

}  // namespace

std::string tracefs_mount_point() {
  for (const char* mount_point : kMountPoints) {
    if (access((std::string(mount_point) + "/events").c_str(), F_OK) == 0) return mount_point;
  }
  return "";
}

Result<Tracepoint> parse_tracepoint_format(const std::string& text) {
  Tracepoint tracepoint;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ID:")) tracepoint.id = number_after(line, "ID:");
    size_t field = line.find("field:");
    if (field == std::string::npos) continue;
    std::string_view declaration = std::string_view(line).substr(field + 6);
    tracepoint.fields[field_name(declaration)] = {number_after(line, "offset:"),
                                                  number_after(line, "size:")};
  }
  if (tracepoint.id == 0) return fail("not a tracepoint format");
  return tracepoint;
}

Result<Tracepoint> read_tracepoint(const std::string& name) {
  std::string mounted = tracefs_mount_point();
  if (!mounted.empty()) {
    UniqueFd fd(::open((mounted + "/events/" + name + "/format").c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return fail_errno("cannot read tracepoint {}", name);
    return parse_tracepoint_format(read_all(fd.get()));
  }
  auto text = read_through_private_mount(name);
  if (!text) return std::unexpected(text.error());
  return parse_tracepoint_format(*text);
}

}  // namespace assay::os
