// Works for its part of the time, half busy and half asleep, then exec()s itself with the next
// --link number, --links times in all. Same pid throughout; each image prints its own truth before
// it goes.
#include <cstdio>
#include <string>

#include <unistd.h>

#include "truth.h"

namespace {

[[gnu::noinline]] void live_one_link(truth::Truth& self, truth::Deadline& deadline) {
  constexpr int64_t kPeriodNs = 10'000'000;
  for (int64_t next = truth::now_ns(); !deadline.passed_or_signalled();) {
    truth::burn_cpu_ns(kPeriodNs / 2);
    next += kPeriodNs;
    if (next > truth::now_ns()) self.wait([&] { return deadline.sleep_until(next); });
  }
}

}  // namespace

// The first link divides --for among all; --slice-ms tells the later ones.
int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"links", 4}, {"link", 1}, {"slice-ms", 0}});
  long links = arguments["links"], link = arguments["link"];
  long slice_ms = arguments["slice-ms"];
  if (slice_ms == 0)
    slice_ms = static_cast<long>(arguments.seconds() * 1000) / (links > 0 ? links : 1);
  truth::Deadline deadline(static_cast<double>(slice_ms) / 1000);
  {
    truth::Truth self("link-" + std::to_string(link));
    live_one_link(self, deadline);
  }
  truth::print_truths();
  if (link >= links || deadline.signalled()) return 0;
  std::string next = std::to_string(link + 1), all = std::to_string(links),
              slice = std::to_string(slice_ms);
  execl("/proc/self/exe", argv[0], "--links", all.c_str(), "--link", next.c_str(), "--slice-ms",
        slice.c_str(), nullptr);
  std::perror("exec_chain: exec");
  return 1;
}
