// --count forked processes that each do a little work every --period-ms and sleep otherwise.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

namespace {

// Shared with the children: a signal to the parent ends them too.
std::atomic<bool>* g_over = nullptr;

[[noreturn]] void live(long number, const truth::Arguments& arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  truth::forget_truths();
  std::signal(SIGTERM,
              SIG_IGN);  // only the parent takes it, and ends the children through the pipe's end
  {
    truth::Truth self("child-" + std::to_string(number));
    truth::Deadline deadline(arguments.seconds());
    int64_t period_ns = arguments["period-ms"] * 1'000'000;
    int64_t next = truth::now_ns() + period_ns * (number % 97) / 97;
    while (!*g_over && self.wait([&] { return deadline.sleep_until(next); })) {
      truth::burn_cpu_ns(100'000);
      next += period_ns;
    }
  }
  truth::print_truths();
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"count", 200}, {"period-ms", 40}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  void* page =
      mmap(nullptr, sizeof *g_over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  g_over = new (page) std::atomic<bool>(false);
  std::vector<pid_t> children;
  for (long i = 1; i <= arguments["count"]; ++i) {
    pid_t child = fork();
    if (child == 0) live(i, arguments);
    if (child < 0) {
      std::perror("many_processes: fork");
      break;
    }
    children.push_back(child);
  }
  deadline.wait_for_end(main_thread);
  *g_over = true;
  for (pid_t child : children) main_thread.wait([&] { return waitpid(child, nullptr, 0); });
  truth::print_truths();
}
