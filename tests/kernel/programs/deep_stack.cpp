// Recurses --depth calls deep, then alternates work and sleep at the bottom: on-CPU and off-CPU
// stacks that deep, at about 64 bytes of stack a frame.
#include <thread>

#include "truth.h"

namespace {

void live_at_the_bottom(truth::Truth& self, const truth::Deadline& deadline) {
  constexpr int64_t kPeriodNs = 10'000'000;
  for (int64_t next = truth::now_ns(); !deadline.passed();) {
    truth::burn_cpu_ns(kPeriodNs / 2);
    next += kPeriodNs;
    if (next > truth::now_ns()) self.wait([&] { return deadline.sleep_until(next); });
  }
}

// The result depends on what comes back and on this call's own array, so it is neither a tail call
// nor inlined into itself.
[[gnu::noinline]] long descend(long left, truth::Truth& self, const truth::Deadline& deadline) {
  volatile long own[4] = {left, left + 1, left + 2, left + 3};
  if (left <= 1) {
    live_at_the_bottom(self, deadline);
    return own[1];
  }
  return descend(left - 1, self, deadline) + own[left & 3];
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"depth", 500}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  long result = 0;
  std::thread deep([&] {
    truth::Truth self("deep");
    result = descend(arguments["depth"], self, deadline);
  });
  deadline.wait_for_end(main_thread);
  deep.join();
  truth::print_truths();
  return result == -1;
}
