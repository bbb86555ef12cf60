// The load of bench/inproc: a fixed amount of work, so that the CPU time it takes is the measure.
//
// Two threads compute through 24 frames, allocate, and take a mutex that is mostly free. Prints the
// CPU time of the whole process in nanoseconds; whatever profiles from inside is part of it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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

}  // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 400'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(run, rounds);
  for (std::thread& thread : threads) thread.join();
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  std::printf("%ld\n", used.tv_sec * 1'000'000'000 + used.tv_nsec);
  return shared_sum == 42 ? 1 : 0;
}
