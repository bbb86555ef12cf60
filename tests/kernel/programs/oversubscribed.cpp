// --threads that never stop running, more than there are CPUs: a thread without a CPU is in the run
// queue.
#include <thread>
#include <vector>

#include "truth.h"

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"threads", 8}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  std::vector<std::thread> threads;
  for (long i = 1; i <= arguments["threads"]; ++i) {
    threads.emplace_back([&, i] {
      truth::Truth self("runner-" + std::to_string(i));
      while (!deadline.passed()) truth::burn_chunk();
    });
  }
  deadline.wait_for_end(main_thread);
  for (auto& thread : threads) thread.join();
  truth::print_truths();
}
