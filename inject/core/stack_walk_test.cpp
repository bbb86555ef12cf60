#include "inject/core/stack_walk.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "inject/core/frame_rule.h"
#include "inject/core/stack_bounds.h"

namespace assay::inject {
namespace {

constexpr size_t kRoom = 256;

struct Walked {
  std::vector<uintptr_t> pcs;
  bool is_complete = false;
};

Walked to_walked(const uintptr_t* pcs, WalkResult result) {
  return {{pcs, pcs + result.frames}, result.complete};
}

// glibc's backtrace (libgcc's unwinder) is the reference: from the frame where both walks meet, up.
std::vector<uintptr_t> reference_from(uintptr_t first) {
  void* frames[kRoom];
  int count = backtrace(frames, kRoom);
  std::vector<uintptr_t> out;
  for (int i = 0; i < count; ++i) {
    uintptr_t pc = reinterpret_cast<uintptr_t>(frames[i]);
    if (!out.empty() || pc == first) out.push_back(pc);
  }
  return out;
}

template <class Then>
__attribute__((noinline)) void deep(int depth, Then then) {
  if (depth == 0) {
    then();
  } else {
    deep(depth - 1, then);
  }
  asm volatile("");
}

// A stack area of unknown size, and a realigned frame: the difficult cases.
template <class Then>
__attribute__((noinline)) void awkward(size_t bytes, Then then) {
  alignas(128) volatile char aligned[128];
  aligned[0] = 1;
  auto* dynamic = static_cast<volatile char*>(__builtin_alloca(bytes));
  dynamic[0] = aligned[0];
  then();
  asm volatile("" : : "r"(dynamic), "r"(aligned) : "memory");
}

void expect_agreement() {
  prepare_stack_walk();
  uintptr_t pcs[kRoom];
  Walked walked = to_walked(pcs, walk_here(pcs, kRoom, 0));
  ASSERT_FALSE(walked.pcs.empty());
  EXPECT_TRUE(walked.is_complete);
  EXPECT_EQ(walked.pcs, reference_from(walked.pcs[0]));
}

TEST(StackWalk, AgreesWithTheReferenceOnTheMainThread) {
  deep(40, expect_agreement);
  awkward(1000, [] { deep(3, expect_agreement); });
}

TEST(StackWalk, AgreesWithTheReferenceOnOtherThreads) {
  for (int i = 0; i < 3; ++i) std::thread([] { deep(20, expect_agreement); }).join();
}

TEST(StackWalk, SkipsWhatItIsAskedTo) {
  deep(5, [] {
    uintptr_t all[kRoom], less[kRoom];
    WalkResult whole = walk_here(all, kRoom, 0), part = walk_here(less, kRoom, 2);
    ASSERT_EQ(part.frames + 2, whole.frames);
    for (size_t i = 0; i < part.frames; ++i) EXPECT_EQ(less[i], all[i + 2]);
    uintptr_t few[3];
    WalkResult cut = walk_here(few, 3, 0);
    EXPECT_EQ(cut.frames, 3u);
    EXPECT_FALSE(cut.complete);
  });
}

__attribute__((noinline)) void hook(std::vector<uintptr_t>& out, const void*& caller) {
  caller = __builtin_return_address(0);
  uintptr_t pcs[kRoom];
  deep(2, [&] { out = to_walked(pcs, walk_above(caller, pcs, kRoom)).pcs; });
}

TEST(StackWalk, BeginsAtTheHooksCaller) {
  std::vector<uintptr_t> pcs;
  const void* caller = nullptr;
  hook(pcs, caller);
  ASSERT_FALSE(pcs.empty());
  EXPECT_EQ(pcs[0], reinterpret_cast<uintptr_t>(caller));
}

uintptr_t signal_pcs[kRoom];
WalkResult signal_result;
void on_signal(int, siginfo_t*, void* context) {
  signal_result = walk_interrupted(context, signal_pcs, kRoom);
}

TEST(StackWalk, GoesThroughSignalFrames) {
  prepare_stack_walk();
  std::vector<char> other(256 << 10);
  stack_t stack{};
  stack.ss_sp = other.data();
  stack.ss_size = other.size();
  for (int flags : {0, SA_ONSTACK}) {
    sigaltstack(&stack, nullptr);
    struct sigaction action {
    }, before{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(SIGUSR2, &action, &before);
    std::vector<uintptr_t> here;
    deep(10, [&] {
      raise(SIGUSR2);
      uintptr_t pcs[kRoom];
      here = to_walked(pcs, walk_here(pcs, kRoom, 0)).pcs;
    });
    sigaction(SIGUSR2, &before, nullptr);
    Walked interrupted = to_walked(signal_pcs, signal_result);
    EXPECT_TRUE(interrupted.is_complete);
    ASSERT_GT(interrupted.pcs.size(), 12u);
    ASSERT_GT(here.size(), 12u);
    // Above the lambda that raised the signal both stacks are the same.
    std::vector<uintptr_t> tail(here.begin() + 1, here.end());
    ASSERT_GE(interrupted.pcs.size(), tail.size());
    EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), interrupted.pcs.rbegin()));
  }
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

std::atomic<int> timer_walks{0}, timer_complete{0};
uintptr_t last_cut[kRoom];
size_t last_cut_frames = 0;

std::string describe_cut() {
  std::string out;
  for (size_t i = 0; i < last_cut_frames; ++i) {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(last_cut[i]), &info);
    out += std::string("\n") + (info.dli_fname ? info.dli_fname : "?") + " " +
           (info.dli_sname ? info.dli_sname : "?") + " +" +
           std::to_string(last_cut[i] - reinterpret_cast<uintptr_t>(info.dli_fbase));
  }
  return out;
}

void on_timer(int, siginfo_t*, void* context) {
  uintptr_t pcs[kRoom];
  WalkResult result = walk_interrupted(context, pcs, kRoom);
  timer_walks.fetch_add(1);
  timer_complete.fetch_add(result.complete);
  if (!result.complete) {
    last_cut_frames = result.frames;
    std::copy(pcs, pcs + result.frames, last_cut);
  }
}

// Interrupted anywhere, in prologues, epilogues, libc and the dynamic linker's stubs.
TEST(StackWalk, StacksInterruptedAnywhereAreComplete) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "skipped: the sanitizer's own assembly has no call-frame information";
#endif
  prepare_stack_walk();
  struct sigaction action {
  }, before{};
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGALRM, &action, &before);
  itimerval every{{0, 500}, {0, 500}}, none{};
  setitimer(ITIMER_REAL, &every, nullptr);
  std::vector<int> numbers(1000);
  for (int round = 0; timer_walks < 500 && round < 100'000; ++round) {
    for (auto& number : numbers) number = std::rand();
    deep(10, [&] {
      std::qsort(numbers.data(), numbers.size(), sizeof(int), [](const void* a, const void* b) {
        return *static_cast<const int*>(a) < *static_cast<const int*>(b) ? -1 : 1;
      });
    });
  }
  setitimer(ITIMER_REAL, &none, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  ASSERT_GE(timer_walks.load(), 500);
  // The CFI of hand-written assembly may be wrong for an instruction or two.
  EXPECT_GE(timer_complete.load(), timer_walks.load() * 0.99) << describe_cut();
}

ucontext_t coroutine, caller_context;
WalkResult on_coroutine;

TEST(StackWalk, AForeignStackIsWalkedInsideItsBounds) {
  constexpr size_t kBytes = 128 << 10;
  // The page above is unreadable: a walk that reads one word too many crashes.
  char* at = static_cast<char*>(
      mmap(nullptr, kBytes + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(at, MAP_FAILED);
  ASSERT_EQ(mprotect(at + 4096, kBytes, PROT_READ | PROT_WRITE), 0);
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = at + 4096;
  coroutine.uc_stack.ss_size = kBytes;
  coroutine.uc_link = &caller_context;
  makecontext(
      &coroutine,
      [] {
        deep(10, [] {
          uintptr_t pcs[kRoom];
          on_coroutine = walk_here(pcs, kRoom, 0);
        });
      },
      0);
  swapcontext(&caller_context, &coroutine);
  EXPECT_GE(on_coroutine.frames, 10u);
  munmap(at, kBytes + 8192);
}

#if defined(__x86_64__)
struct CopiedWalks {
  Walked whole, copied, cut;
};

// A sanitizer forbids reading the space between the variables of a stack.
__attribute__((no_sanitize("address", "thread", "undefined"))) void copy_stack(uintptr_t from,
                                                                               uintptr_t* into,
                                                                               size_t words) {
  for (size_t i = 0; i < words; ++i) into[i] = reinterpret_cast<const volatile uintptr_t*>(from)[i];
}

Walked walk_part(uintptr_t pc, uintptr_t sp, size_t bytes) {
  // Exactly as long as stated, so that a sanitizer detects a read beyond it.
  std::vector<uintptr_t> copy(bytes / sizeof(uintptr_t));
  copy_stack(sp - kRedZoneBytes, copy.data(), copy.size());
  uintptr_t pcs[kRoom];
  return to_walked(pcs,
                   walk_copy(pc, sp, copy.data(), copy.size() * sizeof(uintptr_t), pcs, kRoom));
}

// The stack as it is, a copy of it, and a copy that ends early.
CopiedWalks walk_copies() {
  ucontext_t here;
  getcontext(&here);
  auto pc = static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RIP]),
       sp = static_cast<uintptr_t>(here.uc_mcontext.gregs[REG_RSP]);
  uintptr_t pcs[kRoom];
  CopiedWalks walks;
  walks.whole = to_walked(pcs, walk_interrupted(&here, pcs, kRoom));
  walks.copied = walk_part(pc, sp, find_stack(sp).high - sp + kRedZoneBytes);
  walks.cut = walk_part(pc, sp, kRedZoneBytes + 24);
  return walks;
}

bool begins_with(const std::vector<uintptr_t>& all, const std::vector<uintptr_t>& part) {
  return part.size() <= all.size() && std::equal(part.begin(), part.end(), all.begin());
}

TEST(StackWalk, ACopyIsWalkedAsFarAsItsRegistersAreKnown) {
  CopiedWalks walks;
  std::thread([&] { deep(5, [&] { walks = walk_copies(); }); }).join();
  EXPECT_TRUE(walks.whole.is_complete);
  EXPECT_GE(walks.copied.pcs.size(), 1U);
  EXPECT_TRUE(begins_with(walks.whole.pcs, walks.copied.pcs));
  EXPECT_GE(walks.cut.pcs.size(), 1U);
  EXPECT_FALSE(walks.cut.is_complete);
  EXPECT_TRUE(begins_with(walks.whole.pcs, walks.cut.pcs));
}
#endif

TEST(StackBounds, OfThreadsAreTheirStacks) {
  std::thread([] {
    int here = 0;
    uintptr_t sp = reinterpret_cast<uintptr_t>(&here);
    learn_thread_layout();
    StackBounds bounds = find_stack(sp);
    EXPECT_TRUE(bounds.holds(sp));
    pthread_attr_t attributes;
    void* low = nullptr;
    size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    EXPECT_LE(bounds.high, reinterpret_cast<uintptr_t>(low) + bytes);
    EXPECT_GT(bounds.high + 65536, reinterpret_cast<uintptr_t>(low) + bytes);
  }).join();
}

TEST(FrameRule, PacksAndUnpacks) {
  FrameRule rule;
  rule.kind = FrameRule::Kind::cfa_deref;
  rule.cfa_register = 15;
  rule.offset = -123456;
  rule.fp = FrameRule::Saved::by_frame;
  rule.fp_slot = -300;
  rule.rbx = FrameRule::Saved::by_cfa;
  rule.rbx_slot = 511;
  FrameRule back = FrameRule::unpack(rule.pack());
  EXPECT_EQ(back.kind, rule.kind);
  EXPECT_EQ(back.cfa_register, rule.cfa_register);
  EXPECT_EQ(back.offset, rule.offset);
  EXPECT_EQ(back.fp, rule.fp);
  EXPECT_EQ(back.fp_slot, rule.fp_slot);
  EXPECT_EQ(back.rbx, rule.rbx);
  EXPECT_EQ(back.rbx_slot, rule.rbx_slot);
}

// The bytes of a module may be anything: nothing outside of them is read.
TEST(FrameRule, NonsenseStaysInsideItsBounds) {
  uint64_t random = 42;
  auto next = [&] { return random = random * 6364136223846793005 + 1442695040888963407; };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint8_t> bytes(64 + next() % 200);
    for (auto& byte : bytes) byte = static_cast<uint8_t>(next() >> 56);
    const uint8_t header[] = {1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0};
    std::copy(std::begin(header), std::end(header), bytes.begin());
    // An entry that names a CIE inside, half of the time with a sensible length.
    if (next() >> 63)
      bytes[20] = static_cast<uint8_t>(bytes.size() - 24), bytes[21] = bytes[22] = bytes[23] = 0;
    if (next() >> 63)
      bytes[24] = static_cast<uint8_t>(next() >> 58), bytes[25] = bytes[26] = bytes[27] = 0;
    const uint8_t* low = bytes.data();
    find_frame_rule_in(low, low, low + bytes.size(),
                       reinterpret_cast<uintptr_t>(low) + next() % 64);
  }
}

}  // namespace
}  // namespace assay::inject
