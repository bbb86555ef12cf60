// planted_heap: allocates known amounts at known lines, and counts exactly.
//
//   prog_planted_heap MILLISECONDS
//
// Prints "ready", works for that long, and prints one line for each site: its function's name, how
// many allocations it made and of how many bytes in all. Sizes from 40 bytes to 300 kB, through
// malloc, calloc, realloc chains, aligned_alloc, and operator new, by two threads. Only leak_here
// does not free its memory.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <time.h>
#include <unistd.h>

namespace {

struct Site {
  const char* name;
  std::atomic<unsigned long> count{0}, bytes{0};
  void add(size_t size) {
    count.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(size, std::memory_order_relaxed);
  }
};
Site small{"small_by_malloc"}, medium{"medium_by_new"}, large{"large_by_calloc"},
    grown{"grown_by_realloc"}, aligned{"aligned_blocks"}, leaked{"leak_here"};

void keep(void* block) {
  asm volatile("" : : "r"(block) : "memory");
}

}  // namespace

// Not static, so that their names are their own.
__attribute__((noinline)) void small_by_malloc() {
  void* block = std::malloc(40);
  small.add(40);
  keep(block);
  std::free(block);
}
__attribute__((noinline)) void medium_by_new() {
  char* block = new char[2000];
  medium.add(2000);
  keep(block);
  delete[] block;
}
__attribute__((noinline)) void large_by_calloc() {
  void* block = std::calloc(300, 1000);
  large.add(300'000);
  keep(block);
  std::free(block);
}
__attribute__((noinline)) void grown_by_realloc() {
  void* block = nullptr;
  for (size_t size : {1000u, 4000u, 16'000u}) {
    block = std::realloc(block, size);
    grown.add(size);
    keep(block);
  }
  std::free(block);
}
__attribute__((noinline)) void aligned_blocks() {
  void* block = std::aligned_alloc(64, 6400);
  aligned.add(6400);
  keep(block);
  std::free(block);
}
__attribute__((noinline)) void leak_here() {
  void* block = std::malloc(100'000);
  leaked.add(100'000);
  keep(block);
}

namespace {

void work(int milliseconds, bool leak) {
  timespec begin{}, now{};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  auto elapsed = [&] {
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1'000'000;
  };
  while (elapsed() < milliseconds) {
    for (int i = 0; i < 1500; ++i) small_by_malloc();
    for (int i = 0; i < 50; ++i) medium_by_new();
    for (int i = 0; i < 5; ++i) grown_by_realloc();
    for (int i = 0; i < 15; ++i) aligned_blocks();
    large_by_calloc();
    if (leak) leak_here();
    usleep(2000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int milliseconds = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::printf("ready\n");
  std::fflush(stdout);
  std::thread other([&] { work(milliseconds, false); });
  work(milliseconds, true);
  other.join();
  for (Site* site : {&small, &medium, &large, &grown, &aligned, &leaked})
    std::printf("%s %lu %lu\n", site->name, site->count.load(), site->bytes.load());
  return 0;
}
