// hostile_target: a program of an ordinary user that attacks whoever profiles it.
//
//   security_hostile_target swap FILE   puts FILE, which it may only read, in the place of every
//                                       memory file that is made in it
//   security_hostile_target claim PID   writes PID into the memory it shares, as a child of its own
//   security_hostile_target storm N     forks all the time; each child allocates and ends
//   security_hostile_target exec N      becomes another program image some twenty times a second
//
// Prints "ready" and runs until it is killed. In mode swap it prints "swapped N" each time.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/preload/heap_channel.h"

namespace {

using assay::inject::HeapChannelHeader;

// The next descriptor of the process is always this one: all before it are taken.
constexpr int kNext = 40;

[[noreturn]] void swap_descriptors(int file) {
  for (unsigned swaps = 0;;) {
    if (fcntl(kNext, F_GETFD) < 0) continue;
    if (dup2(file, kNext) == kNext) {
      char line[64];
      int size = std::snprintf(line, sizeof line, "swapped %u\n", ++swaps);
      if (write(STDOUT_FILENO, line, static_cast<size_t>(size)) < 0) std::exit(1);
    }
    // Until it was closed: then the next one may come.
    for (int i = 0; i < 2000 && fcntl(kNext, F_GETFD) >= 0; ++i) usleep(1000);
    close(kNext);
  }
}

// The channels for children, behind the ring of our own.
char* find_child_channels(uint32_t& count) {
  FILE* maps = std::fopen("/proc/self/maps", "re");
  char line[512];
  char* found = nullptr;
  while (maps != nullptr && found == nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    if (std::strstr(line, "memfd:assay-heap-channel") == nullptr) continue;
    char* begin = reinterpret_cast<char*>(std::strtoull(line, nullptr, 16));
    auto* header = reinterpret_cast<HeapChannelHeader*>(begin);
    if (header->magic != assay::inject::kHeapChannelMagic) continue;
    count = header->child_channels;
    found = begin + assay::inject::kHeapChannelHeaderBytes + header->ring_bytes;
  }
  if (maps != nullptr) std::fclose(maps);
  return found;
}

[[noreturn]] void claim(uint32_t pid) {
  while (true) {
    uint32_t count = 0;
    char* channels = find_child_channels(count);
    for (uint32_t i = 0; channels != nullptr && i < count; ++i) {
      auto* header =
          reinterpret_cast<HeapChannelHeader*>(channels + i * assay::inject::kChildChannelBytes);
      header->pid = pid;
      header->parent_pid = static_cast<uint32_t>(getpid());
      header->ready = 1;
    }
    usleep(1000);
  }
}

[[noreturn]] void storm() {
  constexpr int kMostChildren = 32;
  for (int children = 0;;) {
    pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 200; ++i) std::free(std::malloc(1 << 14));
      usleep(2000);
      _exit(0);
    }
    if (child > 0) ++children;
    while (children > 0 && waitpid(-1, nullptr, children >= kMostChildren ? 0 : WNOHANG) > 0)
      --children;
    usleep(1000);
  }
}

[[noreturn]] void become_another() {
  for (int i = 0; i < 50; ++i) {
    std::free(std::malloc(1 << 16));
    usleep(1000);
  }
  char self[] = "/proc/self/exe", mode[] = "exec", argument[] = "1";
  char* arguments[] = {self, mode, argument, nullptr};
  execv(self, arguments);
  std::exit(5);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string mode = argv[1];
  if (mode == "swap") {
    int file = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (file < 0) return 3;
    while (dup(file) < kNext - 1) {
    }
    constexpr int kSwappers = 4;  // one of them runs when it matters
    for (int i = 0; i < kSwappers; ++i) std::thread(swap_descriptors, file).detach();
  } else if (mode == "claim") {
    std::thread(claim, static_cast<uint32_t>(std::atoi(argv[2]))).detach();
  }
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 4;
  if (mode == "storm") storm();
  if (mode == "exec") become_another();
  // Where an injector finds a thread: it waits, and it allocates.
  while (true) {
    std::free(std::malloc(1 << 16));
    timespec pause{0, 1'000'000};
    ppoll(nullptr, 0, &pause, nullptr);
  }
}
