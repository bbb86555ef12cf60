// Threads that live for less than a tick of the kernel's clock, and whether a CPU profile gives
// them their time.
//
// short_threads [THREADS [LIFE_US [HZ [block]]]]: two threads make so many threads of LIFE_US of
// CPU time each, one half of it in early_half and one in late_half, while another thread computes
// all along in long_life. Every one of them reads its own CPU clock; the profile must agree with
// those clocks, part by part, and in total with getrusage. `block`: every other short thread blocks
// the signal; its time must be missing and not be given to others. Prints a table; exit 0: all
// within the tolerances below.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <assay/assay.h>
#include <sys/resource.h>
#include <time.h>

// Each in a section of its own, so that addresses tell them apart without symbols.
#define PART(name)                                         \
  extern "C" const char __start_##name[], __stop_##name[]; \
  __attribute__((noinline, section(#name))) static void name(long until_ns)

namespace {

enum Part { kEarly, kLate, kLong, kElsewhere, kParts };
constexpr const char* kNames[kParts] = {"early half", "late half", "long-lived", "elsewhere"};

std::atomic<bool> done = false;
std::atomic<long> clock_ns[kParts], threads_left = 2000, blocked_ns;
long life_ns = 2'000'000;
bool with_blockers = false;

long read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

long thread_ns() {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

// Forced inline, so that the time is spent in the part's own section.
[[gnu::always_inline]] inline void burn(long until_ns) {
  do {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 20'000; ++i) {
      sum += i * i;
      asm volatile("" : "+r"(sum));
    }
  } while (thread_ns() < until_ns);
}

}  // namespace

PART(early_half) {
  burn(until_ns);
}
PART(late_half) {
  burn(until_ns);
  asm volatile("nop");
}
PART(long_life) {
  burn(until_ns);
  asm volatile("nop\n\tnop");
}

namespace {

void live_shortly(bool blocks) {
#ifdef SAYS_THAT_THREADS_BEGIN
  assay_thread_begin();
#endif
  if (blocks) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }
  long begin_ns = thread_ns();
  early_half(begin_ns + life_ns / 2);
  long middle_ns = thread_ns();
  late_half(begin_ns + life_ns);
  long end_ns = thread_ns();
  if (blocks) {
    blocked_ns += end_ns;
    return;
  }
  clock_ns[kEarly] += middle_ns - begin_ns;
  clock_ns[kLate] += end_ns - middle_ns;
}

// Pauses of any length in between: on a machine that is full, threads would take turns at the very
// ticks that profiles are made at.
void make_threads() {
  std::minstd_rand random(static_cast<unsigned>(read_clock(CLOCK_MONOTONIC)));
  for (long left = --threads_left; left >= 0; left = --threads_left) {
    std::thread(live_shortly, with_blockers && left % 2 == 1).join();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
  }
}

void live_long() {
  long begin_ns = thread_ns();
  while (!done) long_life(thread_ns() + 1'000'000);
  clock_ns[kLong] += thread_ns() - begin_ns;
}

long used_ns() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000'000 +
         (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1'000;
}

int append(void* bytes, const void* data, size_t size) {
  auto* from = static_cast<const char*>(data);
  auto* to = static_cast<std::vector<char>*>(bytes);
  to->insert(to->end(), from, from + size);
  return 0;
}

bool is_in(const char* begin, const char* end, unsigned long pc) {
  return pc >= reinterpret_cast<unsigned long>(begin) && pc < reinterpret_cast<unsigned long>(end);
}

Part part_of(const unsigned long* pcs, unsigned long count) {
  for (unsigned long i = 0; i < count; ++i) {
    if (is_in(__start_early_half, __stop_early_half, pcs[i])) return kEarly;
    if (is_in(__start_late_half, __stop_late_half, pcs[i])) return kLate;
    if (is_in(__start_long_life, __stop_long_life, pcs[i])) return kLong;
  }
  return kElsewhere;
}

// The records of gperftools' format: count, depth, addresses; the first word of the end is 0.
void count_samples(const std::vector<char>& bytes, long (&samples)[kParts], long& period_ns) {
  std::vector<unsigned long> words(bytes.size() / sizeof(unsigned long));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(unsigned long));
  period_ns = static_cast<long>(words[3]) * 1'000;
  for (size_t at = 5; at + 2 < words.size() && words[at] != 0; at += 2 + words[at + 1])
    samples[part_of(&words[at + 2], words[at + 1])] += static_cast<long>(words[at]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) threads_left = std::atol(argv[1]);
  if (argc > 2) life_ns = std::atol(argv[2]) * 1'000;
  unsigned hz = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 500;
  with_blockers = argc > 4 && std::strcmp(argv[4], "block") == 0;
  long before_ns = used_ns();
  if (assay_cpu_start(hz) != 0) return 1;
  std::thread computing(live_long), first(make_threads), second(make_threads);
  first.join();
  second.join();
  done = true;
  computing.join();
  std::vector<char> bytes;
  assay_output output{nullptr, append, &bytes, ASSAY_GPERFTOOLS};
  if (assay_cpu_stop(&output) != 0) return 1;
  long total_ns = used_ns() - before_ns, period_ns = 0, samples[kParts] = {}, sampled_ns = 0;
  count_samples(bytes, samples, period_ns);
  clock_ns[kElsewhere] =
      total_ns - blocked_ns - clock_ns[kEarly] - clock_ns[kLate] - clock_ns[kLong];
  timespec tick{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  long tick_ns = tick.tv_nsec;
  bool good = true;
  for (int part = 0; part < kParts; ++part) {
    double truth = static_cast<double>(clock_ns[part]),
           seen = static_cast<double>(samples[part] * period_ns);
    sampled_ns += samples[part] * period_ns;
    // Samples are taken at ticks. Four standard deviations of so many independent looks, and what
    // making and ending a thread takes.
    double looks = truth / static_cast<double>(std::max(period_ns, tick_ns));
    double tolerance = looks > 0 ? 4 / std::sqrt(looks) + 0.03 : 1;
    bool fits = part == kElsewhere || std::fabs(seen / truth - 1) <= tolerance;
    good = good && fits;
    std::printf("%-10s clock %6.3f s  profile %6.3f s  ratio %.3f (1 ± %.3f)%s\n", kNames[part],
                truth / 1e9, seen / 1e9, truth > 0 ? seen / truth : 0, tolerance,
                fits ? "" : "  WRONG");
  }
  double ratio = static_cast<double>(sampled_ns) / static_cast<double>(total_ns - blocked_ns);
  bool total_fits = std::fabs(ratio - 1) <= 0.05;
  std::printf("total      getrusage %.3f s (%.3f of it blocked)  profile %.3f s  ratio %.3f%s\n",
              static_cast<double>(total_ns) / 1e9, static_cast<double>(blocked_ns) / 1e9,
              static_cast<double>(sampled_ns) / 1e9, ratio, total_fits ? "" : "  WRONG");
  return good && total_fits ? 0 : 1;
}
