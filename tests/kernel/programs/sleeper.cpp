// --threads that do nothing but sleep, --sleep-us at a time.
#include <thread>
#include <vector>

#include "truth.h"

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"threads", 2}, {"sleep-us", 5000}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  std::vector<std::thread> threads;
  for (long i = 1; i <= arguments["threads"]; ++i) {
    threads.emplace_back([&, i] {
      truth::Truth self("sleeper-" + std::to_string(i));
      while (!deadline.passed()) {
        int64_t until = truth::now_ns() + arguments["sleep-us"] * 1000;
        self.wait([&] { return deadline.sleep_until(until); });
      }
    });
  }
  deadline.wait_for_end(main_thread);
  for (auto& thread : threads) thread.join();
  truth::print_truths();
}
