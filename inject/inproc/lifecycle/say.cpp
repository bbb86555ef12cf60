#include "inject/inproc/lifecycle/say.h"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace assay::inproc {
namespace {

constexpr unsigned char kMark = 0x80;

}  // namespace

void say(const char* format, ...) {
  char line[512] = "libassay: ";
  size_t length = std::strlen(line);
  va_list arguments;
  va_start(arguments, format);
  int wrote = vsnprintf(line + length, sizeof line - length - 1, format, arguments);
  va_end(arguments);
  if (wrote < 0) return;
  length = std::strlen(line);
  line[length++] = '\n';
  // To the descriptor itself: the host's stdio may be locked, or buffered.
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, line, length);
}

int64_t environment_number(const char* name, int64_t otherwise) {
  const char* text = getenv(name);
  if (text == nullptr || text[0] == 0) return otherwise;
  char* end = nullptr;
  int64_t number = std::strtoll(text, &end, 10);
  if (*end == 0) return number;
  say("%s=%.60s is no number and is ignored", name, text);
  return otherwise;
}

bool environment_flag(const char* name) {
  const char* text = getenv(name);
  return text != nullptr && text[0] != 0 && std::strchr("tTyY1", text[0]) != nullptr;
}

assay_format environment_format() {
  const char* text = getenv("ASSAY_PROFILE_FORMAT");
  return text != nullptr && std::strcmp(text, "pprof") == 0 ? ASSAY_PPROF : ASSAY_GPERFTOOLS;
}

bool environment_path(const char* name, char* path, size_t room) {
  char* text = getenv(name);
  if (text == nullptr || text[0] == 0) return false;
  bool inherited = (static_cast<unsigned char>(text[0]) & kMark) != 0;
  if (std::strlen(text) + 16 >= room) {
    say("the path in %s is too long", name);
    return false;
  }
  std::strcpy(path, text);
  path[0] = static_cast<char>(static_cast<unsigned char>(text[0]) & ~kMark);
  char use_pid[64];
  snprintf(use_pid, sizeof use_pid, "%s_USE_PID", name);
  if (inherited || environment_flag(use_pid)) add_pid(path, room);
  // Changed in place: the program's own code has not started yet.
  text[0] = static_cast<char>(static_cast<unsigned char>(text[0]) | kMark);
  return true;
}

void unmark_environment_path(const char* name) {
  char* text = getenv(name);
  if (text != nullptr) text[0] = static_cast<char>(static_cast<unsigned char>(text[0]) & ~kMark);
}

void add_pid(char* path, size_t room) {
  size_t length = std::strlen(path);
  snprintf(path + length, room - length, "_%d", getpid());
}

bool take_request_signal(int signal, void (*handler)(int)) {
  if (signal <= 0 || signal >= NSIG) return false;
  struct sigaction now {};
  bool usable =
      sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
      (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || now.sa_handler == handler);
  if (!usable) return false;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  return sigaction(signal, &action, nullptr) == 0;
}

}  // namespace assay::inproc
