// Two threads (two processes with --processes) that pass one byte back and forth over two pipes:
// every hand-off is a context switch. With --pin both share one CPU, which gives the highest switch
// rate.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

namespace {

void pin_to_first_cpu() {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  sched_setaffinity(0, sizeof one, &one);
}

struct Pipes {
  int there[2], back[2];
};

bool take(truth::Truth& self, int fd) {
  char byte;
  return self.wait([&] { return read(fd, &byte, 1); }) == 1;
}

void ping(const Pipes& pipes, const truth::Deadline& deadline) {
  truth::Truth self("ping");
  while (!deadline.passed()) {
    if (write(pipes.there[1], "x", 1) != 1 || !take(self, pipes.back[0])) break;
  }
  close(pipes.there[1]);
}

void pong(const Pipes& pipes) {
  truth::Truth self("pong");
  while (take(self, pipes.there[0])) {
    if (write(pipes.back[1], "x", 1) != 1) break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {}, {"pin", "processes"});
  if (arguments.has("pin")) pin_to_first_cpu();
  Pipes pipes;
  if (pipe(pipes.there) != 0 || pipe(pipes.back) != 0) return 1;
  pid_t child = -1;
  if (arguments.has("processes")) {
    child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      close(pipes.there[1]);  // so that pong sees the end when ping closes its own
      pong(pipes);
      truth::print_truths();
      return 0;
    }
  }
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  std::thread ping_thread([&] { ping(pipes, deadline); });
  std::thread pong_thread;
  if (child < 0) pong_thread = std::thread([&] { pong(pipes); });
  deadline.wait_for_end(main_thread);
  ping_thread.join();
  if (pong_thread.joinable()) pong_thread.join();
  if (child > 0) main_thread.wait([&] { return waitpid(child, nullptr, 0); });
  truth::print_truths();
}
