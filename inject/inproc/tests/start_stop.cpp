// Starts and stops CPU profiles as fast as it can while threads compute, allocate, sleep, come and
// go.
//
// start_stop N: N profiles; prints "done N samples S errno-changes E". `start_stop N host-sigprof`
// also has an own SIGPROF handler and timer, and prints how often they ran. Exit 0: nothing went
// wrong.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <assay/assay.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

std::atomic<bool> done = false;
std::atomic<long> errno_changes = 0, host_ticks = 0, short_lived = 0;

void compute() {
  while (!done) {
    errno = 4242;
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 100'000; ++i) {
      sum += i * i;
      asm volatile("" : "+r"(sum));
    }
    if (errno != 4242) ++errno_changes;
    std::free(std::malloc(sum % 1000 + 1));
  }
}

int count_bytes(void* sum, const void*, size_t size) {
  *static_cast<size_t*>(sum) += size;
  return 0;
}

int profile_once(size_t& bytes, bool with_output) {
  if (assay_cpu_start(1000) != 0) return 1;
  assay_output output{};
  output.sink = count_bytes;
  output.sink_argument = &bytes;
  return assay_cpu_stop(with_output ? &output : nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
  bool host_sigprof = argc > 2 && std::strcmp(argv[2], "host-sigprof") == 0;
  if (host_sigprof) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++host_ticks; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    itimerval every{{0, 10'000}, {0, 10'000}};
    setitimer(ITIMER_PROF, &every, nullptr);
  }
  std::vector<std::thread> threads;
  threads.emplace_back(compute);
  threads.emplace_back([] {
    while (!done) usleep(500);
  });
  threads.emplace_back([] {
    while (!done) {
      std::thread([] { ++short_lived; }).join();
      usleep(200);
    }
  });
  int failed = 0;
  size_t bytes = 0;
  for (int i = 0; i < rounds && failed == 0; ++i) failed = profile_once(bytes, i % 500 == 0);
  if (host_sigprof) {
    assay_cpu_start(500);
    usleep(300'000);
    assay_output output{};
    output.sink = count_bytes;
    output.sink_argument = &bytes;
    failed |= assay_cpu_stop(&output);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  char why[256];
  if (failed != 0) std::printf("failed: %s\n", assay_last_error(why, sizeof why));
  std::printf("done %d bytes %zu errno-changes %ld host-ticks %ld short-lived %ld\n", rounds, bytes,
              errno_changes.load(), host_ticks.load(), short_lived.load());
  bool good = failed == 0 && errno_changes == 0 && bytes > 0 && (!host_sigprof || host_ticks > 0);
  return good ? 0 : 1;
}
