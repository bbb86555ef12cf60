// One thread that runs --percent of the time: CPU work and a sleep in every period of 10 ms.
#include <thread>

#include "truth.h"

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"percent", 30}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  std::thread busy([&] {
    truth::Truth self("busy");
    constexpr int64_t kPeriodNs = 10'000'000;
    int64_t work_ns = kPeriodNs / 100 * arguments["percent"];
    for (int64_t next = truth::now_ns(); !deadline.passed();) {
      truth::burn_cpu_ns(work_ns);
      next += kPeriodNs;
      if (next > truth::now_ns()) self.wait([&] { return deadline.sleep_until(next); });
    }
  });
  deadline.wait_for_end(main_thread);
  busy.join();
  truth::print_truths();
}
