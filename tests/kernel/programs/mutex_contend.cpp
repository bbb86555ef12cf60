// --threads that compete for one mutex, each holding it for --hold-us of CPU, with --gap-us of work
// between. A wait is a lock() after a failed try_lock(); its time is measured around lock().
#include <mutex>
#include <thread>
#include <vector>

#include "truth.h"

namespace {

std::mutex g_contended;

[[gnu::noinline]] void lock_contended(truth::Truth& self) {
  if (!g_contended.try_lock()) self.wait([] { g_contended.lock(); });
}

[[gnu::noinline]] void critical_section(truth::Truth& self, int64_t hold_ns) {
  lock_contended(self);
  truth::burn_cpu_ns(hold_ns);
  g_contended.unlock();
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"threads", 4}, {"hold-us", 50}, {"gap-us", 20}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  std::vector<std::thread> threads;
  for (long i = 1; i <= arguments["threads"]; ++i) {
    threads.emplace_back([&, i] {
      truth::Truth self("contender-" + std::to_string(i));
      while (!deadline.passed()) {
        critical_section(self, arguments["hold-us"] * 1000);
        truth::burn_cpu_ns(arguments["gap-us"] * 1000);
      }
    });
  }
  deadline.wait_for_end(main_thread);
  for (auto& thread : threads) thread.join();
  truth::print_truths();
}
