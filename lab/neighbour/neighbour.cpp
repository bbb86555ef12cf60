// neighbour: threads that use a CPU all the time, so that the server beside it has to share. Ends
// on SIGTERM, or when its parent process ends.
#include <cstdio>
#include <thread>
#include <vector>

#include <unistd.h>

#include "lab/common/keep.h"
#include "lab/common/options.h"
#include "lab/common/process.h"

namespace {

[[noreturn]] void want_the_cpu() {
  for (unsigned long i = 0;; ++i) lab::keep(i);
}

}  // namespace

int main(int argc, char** argv) {
  lab::Options options("neighbour", "takes CPU time from whoever is beside it");
  options.number("threads", 4, 1, 256, "threads that never wait");
  options.parse(argc, argv);
  if (!lab::die_with_parent(getppid())) return 1;
  std::vector<std::thread> threads;
  for (long i = 1; i < options.number("threads"); ++i) threads.emplace_back(want_the_cpu);
  want_the_cpu();
}
