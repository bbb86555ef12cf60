// Programs compiled here and now in the ways servers are built, recorded with perf_event and
// unwound: every stack must reach its thread's first frame.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"
#include "unwind/testing/stack_recorder.h"

namespace assay::unwind {
namespace {

using model::StackEnd;
using testing::Playback;
using testing::RecordedEvent;
using testing::StackRecorder;

// Recursion, variable-length arrays, a signal handler that is itself sampled, a thread, libc and
// the vdso, and a function in a library opened while it runs (given as first argument).
constexpr const char* kProgram = R"c(
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
volatile unsigned long sink;
volatile int done;
__attribute__((noinline)) void burn(int n) { for (int i = 0; i < n; i++) sink += i * i; }
__attribute__((noinline)) int recurse(int depth) {
  volatile char room[40];
  room[0] = depth;
  if (depth == 0) { burn(20000); return 1; }
  return recurse(depth - 1) + room[0];
}
__attribute__((noinline)) void arrays(int n) {
  volatile char a[n * 16 + 1];
  char* p = alloca(n * 8 + 1);
  memset(p, 1, n * 8);
  a[n] = 1;
  burn(20000);
  sink += a[n] + p[0];
}
static void handler(int s) { sink += s; burn(200000); }
static int compare(const void* a, const void* b) { burn(20); return *(const int*)a - *(const int*)b; }
static void* thread(void* arg) {
  while (!done) {
    recurse(30);
    int v[200];
    for (int i = 0; i < 200; i++) v[i] = i * 7919 % 211;
    qsort(v, 200, sizeof v[0], compare);
    struct timespec t;
    for (int i = 0; i < 500; i++) clock_gettime(CLOCK_MONOTONIC, &t);
  }
  return arg;
}
int main(int argc, char** argv) {
  void (*plugin)(void) = 0;
#ifndef STATIC
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
  if (library) plugin = (void (*)(void))dlsym(library, "plugin");
#endif
  struct itimerval every = {{0, 5000}, {0, 5000}};
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &every, 0);
  pthread_t t;
  pthread_create(&t, 0, thread, 0);
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    for (int i = 0; i < 20; i++) arrays(i), recurse(200);
    if (plugin) plugin();
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 700);
  done = 1;
  pthread_join(t, 0);
  return argc > 5;
}
)c";
constexpr const char* kPlugin = R"c(
volatile unsigned long sum;
__attribute__((noinline)) static void inner(int n) { for (int i = 0; i < n; i++) sum += i; }
void plugin(void) { for (int i = 0; i < 40; i++) inner(20000), sum++; }
)c";

struct Outcome {
  uint64_t samples = 0, complete = 0, interrupted = 0, in_plugin = 0;
  size_t deepest = 0;
  std::string first_failure;
};

class RealProgramsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(dir_ + "/program.c") << kProgram;
    std::ofstream(dir_ + "/plugin.c") << kPlugin;
  }

  bool compile(const std::string& how) {
    return std::system(
               (how + " -o " + dir_ + "/program " + dir_ + "/program.c -lpthread 2>/dev/null")
                   .c_str()) == 0;
  }

  // A sample hits the signal handler or the deepest call by chance: recordings are repeated until
  // one does. What an unwinder cannot do it cannot do however often.
  std::optional<Outcome> record(const std::vector<std::string>& arguments,
                                const testing::RecordOptions& options) {
    constexpr int kAttempts = 4;
    std::optional<Outcome> out;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      out = record_once(arguments, options);
      if (!out || (out->samples > 20 && out->interrupted > 0 && out->deepest >= 200)) break;
    }
    return out;
  }

  // nullopt: perf_event is not permitted here.
  std::optional<Outcome> record_once(std::vector<std::string> arguments,
                                     const testing::RecordOptions& options) {
    arguments.insert(arguments.begin(), dir_ + "/program");
    auto recorder = StackRecorder::start(arguments, options);
    if (!recorder) return std::nullopt;
    auto events = (*recorder)->run();
    Outcome out;
    Playback playback;
    auto unwinder = Unwinder::create("");
    playback.play(
        events,
        [&](pid_t, const model::Mapping& mapping, const model::Module& module) {
          unwinder->prepare(0, mapping, module);
        },
        [&](const RecordedEvent& e, const model::AddressSpace& space) {
          if (e.registers.known == 0) return;
          RawStack raw{e.pid, e.tid, e.registers, e.copy, e.chain};
          note(unwinder->unwind(raw, space), space, playback.modules(), out);
        });
    return out;
  }

  static void note(const UserStack& stack, const model::AddressSpace& space,
                   const model::ModuleTable& modules, Outcome& out) {
    ++out.samples;
    out.complete += stack.end == StackEnd::complete;
    out.deepest = std::max(out.deepest, stack.frames.size());
    bool interrupted = false, in_plugin = false;
    std::string text(model::stack_end_text(stack.end));
    for (size_t i = 0; i < stack.frames.size(); ++i) {
      interrupted = interrupted || (i > 0 && !stack.frames[i].is_return_address);
      const model::Mapping* mapping = space.find(stack.frames[i].pc);
      std::string path = mapping ? modules[mapping->module].path : "?";
      in_plugin = in_plugin || path.ends_with("plugin.so");
      uint64_t offset =
          mapping ? mapping->to_module_address(stack.frames[i].pc) : stack.frames[i].pc;
      if (i < 3 || i + 3 > stack.frames.size()) {
        text += "\n  " + std::to_string(i) + " " + path + "+" + std::to_string(offset);
      }
    }
    out.interrupted += interrupted;
    out.in_plugin += in_plugin;
    if (stack.end != StackEnd::complete && out.first_failure.empty()) out.first_failure = text;
  }

  // Samples of the first microseconds fall into the loader before its own first frame is set up,
  // and on a busy machine few samples are taken in all: two may be incomplete.
  void expect_complete(const std::optional<Outcome>& out) {
    if (!out) GTEST_SKIP() << "skipped: perf_event_open is not permitted here";
    ASSERT_GT(out->samples, 20u);
    EXPECT_LE(out->samples - out->complete, 2u) << out->first_failure;
    EXPECT_GT(out->interrupted, 0u) << "no sample inside the signal handler";
    EXPECT_GE(out->deepest, 200u);
  }

  TemporaryDirectory scratch_;
  std::string dir_ = scratch_.path();
};

TEST_F(RealProgramsTest, WithoutFramePointers) {
  if (!compile("cc -O2 -fomit-frame-pointer")) GTEST_SKIP() << "skipped: no C compiler";
  std::string plugin = dir_ + "/plugin.so";
  ASSERT_EQ(std::system(("cc -O2 -shared -fPIC -o " + plugin + " " + dir_ + "/plugin.c").c_str()),
            0);
  auto out = record({plugin}, {});
  expect_complete(out);
  if (out) {
    EXPECT_GT(out->in_plugin, 0u);
  }
}

TEST_F(RealProgramsTest, WithFramePointers) {
  if (!compile("cc -O2 -fno-omit-frame-pointer")) GTEST_SKIP() << "skipped: no C compiler";
  expect_complete(record({}, {}));
}

TEST_F(RealProgramsTest, Stripped) {
  if (!compile("cc -O2 -s")) GTEST_SKIP() << "skipped: no C compiler";
  expect_complete(record({}, {}));
}

TEST_F(RealProgramsTest, Static) {
  if (!compile("cc -O2 -static -DSTATIC")) GTEST_SKIP() << "skipped: no static C library";
  expect_complete(record({}, {}));
}

TEST_F(RealProgramsTest, StaticPie) {
  if (!compile("cc -O2 -static-pie -DSTATIC")) GTEST_SKIP() << "skipped: no static C library";
  expect_complete(record({}, {}));
}

TEST_F(RealProgramsTest, NotOptimised) {
  if (!compile("cc -O0")) GTEST_SKIP() << "skipped: no C compiler";
  expect_complete(record({}, {}));
}

// musl's own code has neither call-frame information nor frame pointers: what is sampled inside it
// ends there, said so; everything else is complete.
TEST_F(RealProgramsTest, Musl) {
  for (std::string how : {"musl-gcc -O2 -DSTATIC", "musl-gcc -O2 -static -DSTATIC"}) {
    if (!compile(how)) GTEST_SKIP() << "skipped: no musl-gcc";
    auto out = record({}, {});
    if (!out) GTEST_SKIP() << "skipped: perf_event_open is not permitted here";
    EXPECT_GT(out->complete, 5u) << how << "\n" << out->first_failure;
  }
}

// A copy of 4 kB holds about 60 of the 200 recursive frames.
TEST_F(RealProgramsTest, ShortCopiesAreJoined) {
  if (!compile("cc -O2 -fomit-frame-pointer")) GTEST_SKIP() << "skipped: no C compiler";
  testing::RecordOptions options;
  options.copy_bytes = 4096;
  auto out = record({}, options);
  if (!out) GTEST_SKIP() << "skipped: perf_event_open is not permitted here";
  ASSERT_GT(out->samples, 20u);
  EXPECT_GT(out->complete, 0u);
}

}  // namespace
}  // namespace assay::unwind
