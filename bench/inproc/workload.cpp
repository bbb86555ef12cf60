// The load of bench/inproc: a fixed amount of work, so that the CPU time it takes is the measure.
//
// Two threads compute through 24 frames, allocate, and take a mutex that is mostly free.
//
//   inproc_bench_workload WORK
//       Prints the CPU time of the whole process in nanoseconds; a profiler inside the process is
//       included.
//   inproc_bench_workload WORK PAIRS HZ
//       With libassay loaded: does the work twice per pair, with and without a CPU profile, in the
//       order - + + - …; prints the CPU times of each pair, without a profile first. The two halves
//       follow each other directly, so a machine that changes its speed affects both.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <assay/assay.h>
#include <dlfcn.h>
#include <time.h>

namespace {

std::mutex shared_mutex;
unsigned long shared_sum = 0;

[[gnu::noinline]] unsigned long work(int depth, unsigned long seed) {
  if (depth > 0) {
    unsigned long deeper = work(depth - 1, seed + 1);
    asm volatile("" : "+r"(deeper));  // no tail call: the frames are real
    return deeper + 1;
  }
  auto block = std::make_unique<unsigned long[]>(64);
  for (unsigned long i = 0; i < 2000; ++i) {
    block[i % 64] += seed * i;
    asm volatile("" : : "r"(block.get()) : "memory");
  }
  return block[seed % 64];
}

void run(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    unsigned long made = work(24, static_cast<unsigned long>(i));
    std::lock_guard hold(shared_mutex);
    shared_sum += made;
  }
}

long cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

long cost_of_work(int rounds) {
  long begin = cpu_ns();
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(run, rounds);
  for (std::thread& thread : threads) thread.join();
  return cpu_ns() - begin;
}

int discard(void*, const void*, size_t) {
  return 0;
}

// Starting and stopping are not measured: they happen once in a profile of half a minute.
int print_pairs(int rounds, int pairs, unsigned hz) {
  auto start = reinterpret_cast<decltype(&assay_cpu_start)>(dlsym(RTLD_DEFAULT, "assay_cpu_start"));
  auto stop = reinterpret_cast<decltype(&assay_cpu_stop)>(dlsym(RTLD_DEFAULT, "assay_cpu_stop"));
  if (start == nullptr || stop == nullptr) {
    std::fputs("libassay is not loaded\n", stderr);
    return 1;
  }
  assay_output nowhere{nullptr, discard, nullptr, ASSAY_GPERFTOOLS};
  for (int pair = 0; pair < pairs; ++pair) {
    long cost[2] = {0, 0};
    for (int half = 0; half < 2; ++half) {
      int on = (half + pair) % 2;
      if (on != 0 && start(hz) != 0) return 1;
      cost[on] = cost_of_work(rounds);
      if (on != 0 && stop(&nowhere) != 0) return 1;
    }
    std::printf("%ld %ld\n", cost[0], cost[1]);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 400'000;
  if (argc > 3)
    return print_pairs(rounds, std::atoi(argv[2]), static_cast<unsigned>(std::atoi(argv[3])));
  cost_of_work(rounds);
  std::printf("%ld\n", cpu_ns());
  return shared_sum == 42 ? 1 : 0;
}
