// libassay_heap.so loaded late, as the injector loads it: hooks are set, sample, and are removed
// under load.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>

#include "tests/inject_heap/channel_file.h"
#include "tests/inject_heap/run_program.h"

namespace assay::inject {
namespace {

// The C functions of attach.h, found as the injector finds them.
struct Library {
  void* handle = dlopen(HEAP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  int (*attach)(int) = reinterpret_cast<int (*)(int)>(dlsym(handle, "assay_heap_attach"));
  int (*detach)() = reinterpret_cast<int (*)()>(dlsym(handle, "assay_heap_detach"));
};
Library& library() {
  static Library loaded;
  return loaded;
}

// Not inlined: otherwise the compiler may read the slot only once.
__attribute__((noinline)) void* slot_of_malloc() {
  void* (*volatile function)(size_t) = malloc;
  return reinterpret_cast<void*>(function);
}

__attribute__((noinline)) void* make(size_t bytes) {
  void* at = malloc(bytes);
  asm volatile("" : : "r"(at) : "memory");
  return at;
}

// Threads that allocate and free for as long as it lives; every block is checked.
class Load {
 public:
  explicit Load(int threads) {
    for (int t = 0; t < threads; ++t) threads_.emplace_back([this] { run(); });
  }
  ~Load() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }
  std::atomic<uint64_t> rounds{0}, faults{0};

 private:
  void run() {
    unsigned char mark = 0;
    while (!stop_) {
      size_t bytes = 100 + (rounds++ % 64) * 50;
      auto* at = static_cast<unsigned char*>(make(bytes));
      std::memset(at, ++mark, bytes);
      at = static_cast<unsigned char*>(realloc(at, bytes * 2));
      faults += at[0] != mark || at[bytes - 1] != mark;
      free(at);
    }
  }
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

class Attach : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(library().attach && library().detach); }
  ~Attach() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = test_folder();
};

TEST_F(Attach, SamplesThenLeavesTheSlotsAsTheyWere) {
  void* before = slot_of_malloc();
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  ASSERT_EQ(library().attach(channel.fd()), 0);
  EXPECT_NE(slot_of_malloc(), before);
  EXPECT_EQ(channel.header().ready, 1u);
  EXPECT_GT(channel.header().hooked_slots, 10u);
  EXPECT_EQ(library().attach(channel.fd()), 101);  // busy: attached already
  for (int i = 0; i < 20000; ++i) free(make(1000));
  EXPECT_EQ(library().detach(), 0);
  EXPECT_EQ(slot_of_malloc(), before);
  EXPECT_EQ(library().detach(), 0);

  HeapSeen seen = channel.read();
  EXPECT_EQ(seen.bad_records, 0u);
  EXPECT_EQ(seen.unknown_frees, 0u);
  EXPECT_EQ(seen.live.size(), 0u);
  // 20 MB at one per 16 KiB: 1,220, give or take 5 × 35.
  EXPECT_NEAR(static_cast<double>(seen.allocs.size()), 1190, 180);
  for (const auto& alloc : seen.allocs) EXPECT_TRUE(alloc.is_complete);
  uint64_t head = channel.header().head;
  for (int i = 0; i < 20000; ++i) free(make(1000));
  EXPECT_EQ(channel.header().head, head);
}

TEST_F(Attach, RefusesWhatIsNoChannel) {
  void* before = slot_of_malloc();
  EXPECT_EQ(library().attach(-1), 100);
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  channel.header().magic = 1;
  EXPECT_EQ(library().attach(channel.fd()), 100);
  EXPECT_EQ(slot_of_malloc(), before);
}

TEST_F(Attach, SamplesWhatIsLoadedAfterwards) {
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  ASSERT_EQ(library().attach(channel.fd()), 0);
  void* plugin = dlopen(HEAP_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr);
  auto* plugin_make = reinterpret_cast<void* (*)(size_t)>(dlsym(plugin, "plugin_make"));
  for (int i = 0; i < 20000; ++i) free(plugin_make(777));
  dlclose(plugin);
  EXPECT_EQ(library().detach(), 0);
  size_t samples = 0;
  for (const auto& alloc : channel.read().allocs) samples += alloc.bytes == 777;
  EXPECT_NEAR(static_cast<double>(samples), 926, 160);  // 5 standard errors
}

TEST_F(Attach, AnObjectWithItsOwnMallocKeepsIt) {
  void* plugin = dlopen(HEAP_PLUGIN_OWN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  ASSERT_NE(plugin, nullptr) << dlerror();
  auto* own_make = reinterpret_cast<void* (*)(size_t)>(dlsym(plugin, "plugin_own_make"));
  auto* own_holds = reinterpret_cast<bool (*)(const void*)>(dlsym(plugin, "plugin_own_holds"));
  ASSERT_TRUE(own_holds(own_make(100))) << "the plugin is not built as this test wants it";
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  ASSERT_EQ(library().attach(channel.fd()), 0);
  EXPECT_TRUE(own_holds(own_make(100)));
  EXPECT_EQ(library().detach(), 0);
  EXPECT_TRUE(own_holds(own_make(100)));
  dlclose(plugin);
}

// The channel that a process made in memory of its own, found as Assay finds it; "" when none.
std::string forked_channel(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:assay-heap-channel") == std::string::npos) continue;
    return "/proc/" + std::to_string(pid) + "/map_files/" + line.substr(0, line.find(' '));
  }
  return "";
}

TEST_F(Attach, AForkedChildIsSampledThroughAChannelOfItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: needs root, to open what another process mapped";
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  ASSERT_EQ(library().attach(channel.fd()), 0);
  uint64_t head = channel.header().head;
  int done[2], leave[2];
  ASSERT_TRUE(pipe(done) == 0 && pipe(leave) == 0);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (int i = 0; i < 20000; ++i) free(make(1000));
    char letter = 'd';
    if (write(done[1], &letter, 1) == 1) (void)!read(leave[0], &letter, 1);
    _exit(0);
  }
  char letter = 0;
  ASSERT_EQ(read(done[0], &letter, 1), 1);
  {
    std::string path = forked_channel(child);
    ASSERT_NE(path, "") << "the child has no channel";
    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    auto* header = static_cast<HeapChannelHeader*>(
        mmap(nullptr, sizeof(HeapChannelHeader), PROT_READ, MAP_SHARED, fd, 0));
    ASSERT_NE(header, MAP_FAILED);
    EXPECT_EQ(header->pid, static_cast<uint32_t>(child));
    EXPECT_EQ(header->rate_bytes, 16u << 10);
    // 1,190 samples of at least a header's size each.
    EXPECT_GT(header->head, 500 * sizeof(HeapAllocRecord));
    munmap(header, sizeof(HeapChannelHeader));
    close(fd);
  }
  ASSERT_EQ(write(leave[1], &letter, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_LT(channel.header().head - head, 100 * sizeof(HeapAllocRecord)) << "the parent's is left";
  EXPECT_EQ(library().detach(), 0);
  for (int end : {done[0], done[1], leave[0], leave[1]}) close(end);
}

// While one thread opens a library again and again, which makes the sampler look through all
// objects under the loader's lock, another forks: no child may find that lock held forever.
TEST_F(Attach, ForkedChildrenFindTheLoaderUnlocked) {
  void* kept =
      dlopen(HEAP_PLUGIN, RTLD_NOW | RTLD_LOCAL);  // so that the loader itself changes nothing
  ASSERT_NE(kept, nullptr);
  ChannelFile channel(folder_ + "/channel", 64 << 10);
  ASSERT_EQ(library().attach(channel.fd()), 0);
  std::atomic<bool> stop{false};
  std::thread loader([&] {
    while (!stop) {
      void* plugin = dlopen(HEAP_PLUGIN, RTLD_NOW | RTLD_LOCAL);
      if (plugin) dlclose(plugin);
    }
  });
  int hung = 0;
  for (int i = 0; i < 150; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(5);  // a hang is a failure, not a wait
      free(make(100'000));
      dl_iterate_phdr([](dl_phdr_info*, size_t, void*) { return 0; }, nullptr);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hung += status != 0;
  }
  stop = true;
  loader.join();
  EXPECT_EQ(library().detach(), 0);
  dlclose(kept);
  EXPECT_EQ(hung, 0);
}

TEST_F(Attach, ABlockFreedUnseenIsNotTakenForALeak) {
  ChannelFile channel(folder_ + "/channel", 1);  // every allocation
  ASSERT_EQ(library().attach(channel.fd()), 0);
  auto* hidden = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "__libc_free"));
  if (!hidden) {
    library().detach();
    GTEST_SKIP() << "skipped: this libc has no second name for free";
  }
  for (int i = 0; i < 100; ++i) hidden(make(1234));
  EXPECT_EQ(library().detach(), 0);
  HeapSeen seen = channel.read();
  EXPECT_EQ(seen.reused_addresses, 0u);
  size_t live = 0;
  for (const auto& [address, alloc] : seen.live) live += alloc.bytes == 1234;
  EXPECT_LE(live, 10u);  // as many as the allocator keeps apart, not 100
}

TEST_F(Attach, ComesAndGoesUnderLoad) {
  Load load(3);
  void* before = slot_of_malloc();
  for (int i = 0; i < 200; ++i) {
    ChannelFile channel(folder_ + "/channel", 32 << 10);
    ASSERT_EQ(library().attach(channel.fd()), 0) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(i % 4 * 200));
    ASSERT_EQ(library().detach(), 0) << i;
    ASSERT_EQ(channel.header().problem, 0u);
  }
  EXPECT_EQ(slot_of_malloc(), before);
  EXPECT_EQ(load.faults, 0u);
  EXPECT_GT(load.rounds, 100u);
}

TEST_F(Attach, TenThousandSwitchesUnderLoad) {
  ChannelFile channel(folder_ + "/channel", 32 << 10);
  ASSERT_EQ(library().attach(channel.fd()), 0);
  {
    Load load(3);
    for (int i = 0; i < 10000; ++i) {
      channel.header().mode = i % 2;
      if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    EXPECT_EQ(load.faults, 0u);
  }
  EXPECT_EQ(library().detach(), 0);
  HeapSeen seen = channel.read();
  EXPECT_EQ(seen.bad_records, 0u);
  EXPECT_EQ(seen.unknown_frees, 0u);
}

}  // namespace
}  // namespace assay::inject
