// Forks --children that each fork --children more, down to --depth; every process works for
// --work-ms of CPU and exits. The root starts such a tree again and again until the time is over.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

namespace {

struct Shape {
  long children, depth, work_ns;
};

void grow(truth::Truth& self, const Shape& shape, long depth);

[[noreturn]] void live_as_child(const Shape& shape, long depth) {
  truth::forget_truths();
  {
    truth::Truth self("twig-" + std::to_string(depth));
    truth::burn_cpu_ns(shape.work_ns);
    grow(self, shape, depth);
  }
  truth::print_truths();
  _exit(0);
}

void grow(truth::Truth& self, const Shape& shape, long depth) {
  if (depth >= shape.depth) return;
  std::vector<pid_t> children;
  for (long i = 0; i < shape.children; ++i) {
    pid_t child = fork();
    if (child == 0) live_as_child(shape, depth + 1);
    if (child < 0) std::perror("fork_tree: fork");
    if (child > 0) children.push_back(child);
  }
  for (pid_t child : children) self.wait([&] { return waitpid(child, nullptr, 0); });
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"children", 3}, {"depth", 2}, {"work-ms", 10}});
  truth::Deadline deadline(arguments);
  Shape shape{arguments["children"], arguments["depth"], arguments["work-ms"] * 1'000'000};
  {
    truth::Truth self("");
    while (!deadline.passed_or_signalled()) grow(self, shape, 0);
  }
  truth::print_truths();
}
