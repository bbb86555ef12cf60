// --per-second threads start and end: each works for --work-us of CPU, sleeps as long, and ends. A
// last line describes the process: {"threads":…,"cpu_ns":…}, all threads and their CPU time.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <thread>

#include "truth.h"

namespace {

void live_shortly(int64_t work_ns) {
  truth::Truth self("short-lived");
  truth::burn_cpu_ns(work_ns);
  self.wait([&] { std::this_thread::sleep_for(std::chrono::nanoseconds(work_ns)); });
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"per-second", 1000}, {"work-us", 100}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  long made = 2;  // this one and the spawner
  std::thread spawner([&] {
    truth::Truth self("spawner");
    constexpr size_t kAlive =
        64;  // at most; a slow machine then spawns fewer, and the lines say how many
    int64_t interval = 1'000'000'000 / std::max(arguments["per-second"], 1L);
    std::deque<std::thread> alive;
    for (int64_t next = truth::now_ns(); !deadline.passed();) {
      if (alive.size() == kAlive) {
        self.wait([&] { alive.front().join(); });
        alive.pop_front();
      }
      alive.emplace_back(live_shortly, arguments["work-us"] * 1000);
      ++made;
      next += interval;
      if (next > truth::now_ns()) self.wait([&] { return deadline.sleep_until(next); });
    }
    for (auto& thread : alive) self.wait([&] { thread.join(); });
  });
  deadline.wait_for_end(main_thread);
  spawner.join();
  truth::print_truths();
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  std::printf("{\"threads\":%ld,\"cpu_ns\":%ld}\n", made, cpu.tv_sec * 1'000'000'000 + cpu.tv_nsec);
}
