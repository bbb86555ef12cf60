// Allocates and frees as fast as it can, and prints the speed. As `heap_load harsh N`: two threads
// with N allocations each, stacks 29 frames deep, 630 bytes on average, 512 blocks of each thread
// alive. As `heap_load pair N`: one thread, N pairs of malloc and free of 64 bytes. Prints "WALL_S
// CPU_S NS_PER_PAIR".
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sys/resource.h>
#include <time.h>

namespace {

double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

constexpr int kDepth = 24;  // and main's or the thread's own frames
constexpr size_t kSlots = 512;

struct Worker {
  uint64_t random;
  char* slots[kSlots] = {};

  // Allocates a block, fills it as a program would, and frees an older one.
  void one() {
    random = random * 6364136223846793005 + 1442695040888963407;
    size_t bytes = 16 + (random >> 33) % 1230;  // 630 on average
    char*& slot = slots[(random >> 20) % kSlots];
    free(slot);
    slot = static_cast<char*>(malloc(bytes));
    memset(slot, static_cast<int>(random), bytes);
  }
};

__attribute__((noinline)) void descend(Worker& worker, int depth) {
  if (depth > 0) {
    descend(worker, depth - 1);
  } else {
    worker.one();
  }
  asm volatile("" : : : "memory");
}

void harsh(long allocations) {
  auto work = [allocations](uint64_t seed) {
    Worker worker{seed, {}};
    for (long i = 0; i < allocations; ++i) descend(worker, kDepth);
    for (char* slot : worker.slots) free(slot);
  };
  std::thread other(work, 1);
  work(2);
  other.join();
}

void pair(long pairs) {
  for (long i = 0; i < pairs; ++i) {
    void* at = malloc(64);
    asm volatile("" : : "r"(at) : "memory");
    free(at);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  long count = atol(argv[2]);
  bool is_pair = strcmp(argv[1], "pair") == 0;
  double wall = now_s(), cpu = cpu_s();
  is_pair ? pair(count) : harsh(count);
  wall = now_s() - wall, cpu = cpu_s() - cpu;
  printf("%.6f %.6f %.3f\n", wall, cpu, wall * 1e9 / static_cast<double>(count));
  return 0;
}
