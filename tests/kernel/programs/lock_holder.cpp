// --threads that compete for one mutex; each holds it in hold_the_lock() for --hold-us, which does
// something after the unlock, so that it is on the stack when the next one is woken.
#include <mutex>
#include <thread>
#include <vector>

#include "truth.h"

namespace {

std::mutex g_contended;
volatile long g_after = 0;

[[gnu::noinline]] void hold_the_lock(truth::Truth& self, int64_t hold_ns) {
  if (!g_contended.try_lock()) self.wait([] { g_contended.lock(); });
  truth::burn_cpu_ns(hold_ns);
  g_contended.unlock();
  g_after = g_after + 1;
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"threads", 4}, {"hold-us", 100}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  std::vector<std::thread> threads;
  for (long i = 1; i <= arguments["threads"]; ++i) {
    threads.emplace_back([&, i] {
      truth::Truth self("contender-" + std::to_string(i));
      while (!deadline.passed()) hold_the_lock(self, arguments["hold-us"] * 1000);
    });
  }
  deadline.wait_for_end(main_thread);
  for (auto& thread : threads) thread.join();
  truth::print_truths();
}
