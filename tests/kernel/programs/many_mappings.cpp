// Maps the page of one function --count times, executable, and runs it through a newly chosen
// mapping each time; --churn-per-second of the mappings are unmapped and mapped again meanwhile. At
// every address it is the same function: mapped_work.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "truth.h"

namespace {

constexpr size_t kPage = 4096;

// Alone on its page, position-independent and calling nothing, so that it runs from any copy.
extern "C" [[gnu::noinline, gnu::section(".text.mapped_work"), gnu::aligned(4096),
             gnu::optimize("no-stack-protector")]] uint64_t
mapped_work(uint64_t x, long rounds) {
  for (long i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

using Work = uint64_t (*)(uint64_t, long);

struct Search {
  uintptr_t address;
  off_t file_offset = -1;
};

// Where in the program's file the byte at an address of its own code comes from.
off_t file_offset_of(uintptr_t address) {
  Search search{address};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && wanted->address >= begin &&
              wanted->address < begin + segment.p_memsz) {
            wanted->file_offset = static_cast<off_t>(wanted->address - begin + segment.p_offset);
          }
        }
        return 1;  // the first object is the program itself
      },
      &search);
  return search.file_offset;
}

void map_copy(int file, off_t offset, void* where) {
  if (mmap(where, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, offset) ==
      MAP_FAILED) {
    std::perror("many_mappings: mmap");
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"count", 10000}, {"churn-per-second", 1000}});
  size_t count = static_cast<size_t>(arguments["count"]);
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  off_t offset = file_offset_of(reinterpret_cast<uintptr_t>(&mapped_work));
  if (file < 0 || offset < 0 || offset % static_cast<off_t>(kPage) != 0) {
    std::fprintf(stderr, "many_mappings: cannot find mapped_work in the program's file\n");
    return 1;
  }
  // The same page of the file side by side: the kernel cannot merge neighbours that do not
  // continue.
  auto* area = static_cast<char*>(
      mmap(nullptr, count * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (area == MAP_FAILED) return 1;
  for (size_t i = 0; i < count; ++i) map_copy(file, offset, area + i * kPage);

  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  std::thread busy([&] {
    truth::Truth self("mapped-busy");
    std::mt19937_64 random(1);
    uint64_t x = 88172645463325252ull;
    long rate = arguments["churn-per-second"];
    int64_t interval = rate > 0 ? 1'000'000'000 / rate : INT64_MAX / 2;
    int64_t next_churn = truth::now_ns() + interval;
    while (!deadline.passed()) {
      auto* work = reinterpret_cast<Work>(area + random() % count * kPage);
      x = work(x | 1, 20'000);
      if (truth::now_ns() >= next_churn) {
        next_churn += interval;
        map_copy(file, offset, area + random() % count * kPage);
      }
    }
  });
  deadline.wait_for_end(main_thread);
  busy.join();
  truth::print_truths();
}
