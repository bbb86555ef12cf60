// --count threads that sleep, as those of a large pool do; --per-second of them get work each
// second: they allocate a little and sleep again. Prints "ready", and at the end, after SIGTERM,
// how many threads there were and how often they worked.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "truth.h"

namespace {

sem_t work;
std::atomic<long> worked{0};

void* live(void*) {
  while (true) {
    while (sem_wait(&work) != 0) {
    }
    auto* memory = static_cast<volatile char*>(std::malloc(1 << 14));
    if (memory == nullptr) std::abort();
    memory[0] = 1;
    std::free(const_cast<char*>(memory));
    worked.fetch_add(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"count", 10'000}, {"per-second", 200}});
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  sem_init(&work, 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{64} * 1024);
  long count = 0;
  for (pthread_t thread; count < arguments["count"]; ++count)
    if (pthread_create(&thread, &attributes, live, nullptr) != 0) break;
  std::puts("ready");
  std::fflush(stdout);
  timespec period{0, 1'000'000'000 / arguments["per-second"]};
  while (sigtimedwait(&ends, nullptr, &period) < 0) sem_post(&work);
  std::printf("{\"threads\": %ld, \"worked\": %ld}\n", count, worked.load());
  std::fflush(stdout);
  std::_Exit(count == arguments["count"] ? 0 : 1);
}
