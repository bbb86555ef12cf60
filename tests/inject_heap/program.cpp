// Programs of known allocation, run by inject_heap_test under libassay_heap.so. Compiled without
// frame pointers. Each prints for its call sites (a section each, so that addresses tell them
// apart)
//   site NAME BEGIN END OBJECTS BYTES LIVE_OBJECTS LIVE_BYTES INVERSE LIVE_INVERSE MIN MAX
// (sums of 1 / size, smallest and largest size), and exits 0.
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

uint64_t random_state = 88172645463325252;
uint64_t next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

struct Count {
  std::atomic<uint64_t> objects{0}, bytes{0}, live_objects{0}, live_bytes{0};
  std::atomic<double> inverse{0}, live_inverse{0};  // sums of 1 / size
  std::atomic<size_t> smallest{SIZE_MAX}, largest{0};
  void add(size_t size, bool lives) {
    if (size < smallest)
      smallest = size;  // a race may give a slightly wrong value, which does not matter
    if (size > largest) largest = size;
    ++objects, bytes += size, inverse += 1.0 / static_cast<double>(size);
    if (lives) ++live_objects, live_bytes += size, live_inverse += 1.0 / static_cast<double>(size);
  }
};

// `noclone` too: a copy would be placed in another section.
#define SITE(name)                                             \
  extern "C" char __start_site_##name[], __stop_site_##name[]; \
  Count count_##name;                                          \
  __attribute__((section("site_" #name), noinline, noclone)) void* site_##name(size_t size)
#define REPORT(name) report(#name, __start_site_##name, __stop_site_##name, count_##name)

void report(const char* name, const char* begin, const char* end, const Count& count) {
  printf("site %s %" PRIuPTR " %" PRIuPTR " ", name, reinterpret_cast<uintptr_t>(begin),
         reinterpret_cast<uintptr_t>(end));
  printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %g %g %zu %zu\n", count.objects.load(),
         count.bytes.load(), count.live_objects.load(), count.live_bytes.load(),
         count.inverse.load(), count.live_inverse.load(), count.smallest.load(),
         count.largest.load());
}

void keep(void* at) {
  asm volatile("" : : "r"(at) : "memory");
}

SITE(small) {
  void* at = malloc(size);
  keep(at);
  return at;
}
SITE(mixed) {
  void* at = malloc(size);
  keep(at);
  return at;
}
SITE(large) {
  void* at = calloc(1, size);
  keep(at);
  return at;
}
SITE(cpp) {
  void* at = operator new(size);
  keep(at);
  return at;
}

// 25 frames between main and the site.
template <class Make>
__attribute__((noinline)) void* deep(int depth, Make make) {
  void* at = depth == 0 ? make() : deep(depth - 1, make);
  keep(at);
  return at;
}

int sizes(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    bool lives = i % 8 == 0;
    auto one = [&](Count& count, size_t size, void* at) {
      count.add(size, lives);
      if (!lives) free(at);
    };
    size_t small = 16 + next_random() % 48;
    one(count_small, small, deep(20, [&] { return site_small(small); }));
    // Log-uniform from 16 bytes to 64 KiB: objects and bytes come from different ends of it.
    size_t mixed = size_t{16} << next_random() % 12;
    mixed += next_random() % mixed;
    one(count_mixed, mixed, deep(20, [&] { return site_mixed(mixed); }));
    if (i % 64 == 0) {
      size_t large = (200 << 10) + next_random() % (1 << 20);
      one(count_large, large, deep(20, [&] { return site_large(large); }));
    }
    size_t object = 24 + next_random() % 400;
    void* at = deep(20, [&] { return site_cpp(object); });
    count_cpp.add(object, lives);
    if (!lives) operator delete(at);
  }
  REPORT(small);
  REPORT(mixed);
  REPORT(large);
  REPORT(cpp);
  return 0;
}

// Each thread frees what its neighbour allocated.
int threads(int count) {
  constexpr int kEach = 20000, kSlots = 64;
  std::vector<std::atomic<void*>> slots(kSlots);
  std::vector<std::thread> all;
  for (int t = 0; t < count; ++t) {
    all.emplace_back([&, t] {
      uint64_t state = 1234567 + static_cast<uint64_t>(t);
      for (int i = 0; i < kEach; ++i) {
        state = state * 6364136223846793005 + 1442695040888963407;
        size_t size = 100 + (state >> 33) % 1000;
        count_mixed.add(size, false);
        free(slots[(state >> 20) % kSlots].exchange(site_mixed(size)));
      }
    });
  }
  for (auto& thread : all) thread.join();
  for (auto& slot : slots) free(slot.exchange(nullptr));
  REPORT(mixed);
  return 0;
}

void burn(Count& count, int objects, size_t size, void* (*site)(size_t)) {
  for (int i = 0; i < objects; ++i) {
    count.add(size, false);
    free(site(size));
  }
}

int fork_children() {
  burn(count_small, 20000, 200, site_small);
  for (int i = 0; i < 3; ++i) {
    pid_t child = fork();
    if (child == 0) {
      burn(count_mixed, 20000, 200, site_mixed);
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  burn(count_small, 20000, 200, site_small);
  REPORT(small);
  REPORT(mixed);
  return 0;
}

// Forks from a multi-threaded program in the middle of everything.
int fork_busy(int forks) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> all;
  for (int t = 0; t < 2; ++t) {
    all.emplace_back([&] {
      while (!stop) free(site_mixed(300));
    });
  }
  int failed = 0;
  for (int i = 0; i < forks; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a hang is a failure, not a wait
      for (int n = 0; n < 200; ++n) free(malloc(4000));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  stop = true;
  for (auto& thread : all) thread.join();
  return failed != 0;
}

int exec_again(char** argv) {
  burn(count_small, 20000, 200, site_small);
  REPORT(small);
  fflush(stdout);
  char mode[] = "after_exec";
  char* args[] = {argv[0], mode, nullptr};
  execv("/proc/self/exe", args);
  return 1;
}

int realloc_chains() {
  for (int i = 0; i < 2000; ++i) {
    char* at = static_cast<char*>(site_small(64));
    size_t size = 64;
    std::memset(at, i, size);
    while (size < (64 << 10)) {
      at = static_cast<char*>(realloc(at, size *= 2));
      if (at[63] != static_cast<char>(i)) return 1;
    }
    if (realloc(at, SIZE_MAX / 2) != nullptr) return 1;  // fails; the block still exists
    if (at[63] != static_cast<char>(i)) return 1;
    at = static_cast<char*>(reallocarray(at, 100, 100));
    if (i % 4 == 0) count_small.add(10000, true);
    if (i % 4 == 1) at = static_cast<char*>(realloc(at, 0));  // frees it
    if (i % 4 >= 2) free(at);
  }
  errno = 0;
  if (reallocarray(nullptr, SIZE_MAX, 2) != nullptr || errno != ENOMEM) return 1;
  REPORT(small);
  return 0;
}

bool is_aligned(void* at, size_t to) {
  return at && reinterpret_cast<uintptr_t>(at) % to == 0;
}

int aligned() {
  for (int i = 0; i < 3000; ++i) {
    void* blocks[6] = {};
    bool good = posix_memalign(&blocks[0], 256, 3000) == 0 && is_aligned(blocks[0], 256);
    good &= is_aligned(blocks[1] = aligned_alloc(64, 6400), 64);
    good &= is_aligned(blocks[2] = memalign(128, 5000), 128);
    good &= is_aligned(blocks[3] = valloc(5000), 4096);
    good &= is_aligned(blocks[4] = pvalloc(5000), 4096) && malloc_usable_size(blocks[4]) >= 8192;
    good &= is_aligned(blocks[5] = operator new (700, std::align_val_t{512}), 512);
    if (!good) return 1;
    for (int b = 0; b < 5; ++b) free(blocks[b]);
    operator delete (blocks[5], std::align_val_t{512});
  }
  void* none = nullptr;
  errno = 7;
  if (posix_memalign(&none, 3, 100) != EINVAL || errno != 7) return 1;
  errno = 0;
  if (malloc(SIZE_MAX / 2) != nullptr || errno != ENOMEM) return 1;
  if (calloc(SIZE_MAX / 2, 4) != nullptr) return 1;
  try {
    void* at = operator new(SIZE_MAX / 2);
    keep(at);
    return 1;
  } catch (const std::bad_alloc&) {
  }
  return 0;
}

int load_plugin(const char* path) {
  for (int i = 0; i < 20; ++i) {
    void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return 1;
    auto* make = reinterpret_cast<void* (*)(size_t)>(dlsym(plugin, "plugin_make"));
    for (int n = 0; n < 2000; ++n) free(make(500));
    if (i == 0) {
      Dl_info info;
      dladdr(reinterpret_cast<void*>(make), &info);
      printf("plugin %" PRIuPTR "\n", reinterpret_cast<uintptr_t>(make));
    }
    dlclose(plugin);
  }
  return 0;
}

int in_signals() {
  struct sigaction action {};
  stack_t other{};
  other.ss_size = 64 << 10;
  other.ss_sp = malloc(other.ss_size);
  sigaltstack(&other, nullptr);
  action.sa_handler = [](int) {
    free(site_large(4000));
  };  // raised here, where it interrupts no allocation
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 3000; ++i) {
    count_large.add(4000, false);
    raise(SIGUSR1);
  }
  REPORT(large);
  return 0;
}

int map_memory() {
  for (int i = 0; i < 2000; ++i) {
    void* at = mmap(nullptr, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 1;
    if (i % 2) munmap(at, 64 << 10);
  }
  errno = 0;
  return mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
                 errno == EINVAL
             ? 0
             : 1;
}

char* early = nullptr;
__attribute__((constructor(101))) void allocate_early() {
  early = static_cast<char*>(realloc(calloc(1, 100), 1000));
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  free(early);
  if (mode == "sizes") return sizes(argc > 2 ? atoi(argv[2]) : 50000);
  if (mode == "threads") return threads(8);
  if (mode == "fork") return fork_children();
  if (mode == "fork_busy") return fork_busy(200);
  if (mode == "exec") return exec_again(argv);
  if (mode == "after_exec") {
    burn(count_mixed, 20000, 200, site_mixed);
    REPORT(mixed);
    return 0;
  }
  if (mode == "realloc") return realloc_chains();
  if (mode == "aligned") return aligned();
  if (mode == "plugin") return load_plugin(argv[2]);
  if (mode == "signals") return in_signals();
  if (mode == "mmap") return map_memory();
  return 2;
}
