// Forks --per-second times a second; each child allocates a little and ends. At the end it prints
// how many there were, and exits with 1 when one of them did not end well.
#include <cstdio>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

namespace {

[[noreturn]] void live_as_child() {
  for (int i = 0; i < 64; ++i) {
    auto* memory = static_cast<volatile char*>(std::malloc(1 << 14));
    if (memory == nullptr) _exit(3);
    memory[0] = 1;
    std::free(const_cast<char*>(memory));
  }
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"per-second", 200}});
  truth::Deadline deadline(arguments);
  int64_t period_ns = 1'000'000'000 / arguments["per-second"], next = truth::now_ns();
  long forked = 0, ended = 0, failed = 0;
  auto reap = [&](int how) {
    for (int status = 0; ended < forked && waitpid(-1, &status, how) > 0; ++ended)
      failed += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  };
  while (!deadline.passed_or_signalled()) {
    pid_t child = fork();
    if (child == 0) live_as_child();
    (child > 0 ? forked : failed) += 1;
    reap(WNOHANG);
    next += period_ns;
    deadline.sleep_until(next);
  }
  reap(0);
  std::printf("{\"forked\": %ld, \"failed\": %ld}\n", forked, failed);
  return failed == 0 ? 0 : 1;
}
