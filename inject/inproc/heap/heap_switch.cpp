#include "inject/inproc/heap/heap_switch.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "inject/inproc/heap/heap_source.h"
#include "inject/inproc/lifecycle/keeper.h"
#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/write/profile_files.h"
#include "inject/inproc/lifecycle/say.h"

namespace assay::inproc {
namespace {

constexpr int64_t kLookMs = 200;

struct HeapSwitch {
  bool on = false;
  bool has_signal = false;
  uint32_t number = 0;
  assay_format format = ASSAY_GPERFTOOLS;
  double allocation_interval = 0, free_interval = 0, live_interval = 0;
  int64_t time_interval_ns = 0;
  double last_allocated = 0, last_freed = 0, peak_live = 0;
  int64_t last_ns = 0;
  char prefix[3072] = "";
};

HeapSwitch heap;  // used by the keeper only, once the program runs
std::atomic<uint32_t> asked, answered;

void dump(const char* why) {
  char file[3200];
  snprintf(file, sizeof file, "%s.%04u.heap", heap.prefix, ++heap.number);
  ByteBuffer bytes;
  assay_output output{};
  output.file = file;
  if (write_heap_profile(heap.format, bytes) && deliver(bytes, output) == 0) {
    say("heap profile in %s (%s)", file, why);
    return;
  }
  char sentence[256];
  say("%s", copy_last_error(sentence, sizeof sentence));
}

void look() {
  HeapTotals now = heap_totals_now();
  double freed = now.allocated_bytes - now.live_bytes;
  char why[96] = "";
  int64_t now_ns = monotonic_ns();
  constexpr double kMb = 1 << 20;
  if (heap.allocation_interval > 0 &&
      now.allocated_bytes >= heap.last_allocated + heap.allocation_interval)
    snprintf(why, sizeof why, "%.0f MB allocated cumulatively, %.0f MB currently in use",
             now.allocated_bytes / kMb, now.live_bytes / kMb);
  else if (heap.free_interval > 0 && freed >= heap.last_freed + heap.free_interval)
    snprintf(why, sizeof why, "%.0f MB freed cumulatively, %.0f MB currently in use", freed / kMb,
             now.live_bytes / kMb);
  else if (heap.live_interval > 0 && now.live_bytes >= heap.peak_live + heap.live_interval)
    snprintf(why, sizeof why, "%.0f MB currently in use", now.live_bytes / kMb);
  else if (heap.time_interval_ns > 0 && now_ns - heap.last_ns >= heap.time_interval_ns)
    snprintf(why, sizeof why, "%ld s since the last one", (now_ns - heap.last_ns) / 1'000'000'000);
  if (why[0] == 0) return;
  heap.last_allocated = now.allocated_bytes;
  heap.last_freed = freed;
  if (now.live_bytes > heap.peak_live) heap.peak_live = now.live_bytes;
  heap.last_ns = now_ns;
  dump(why);
}

int64_t answer_requests() {
  for (; answered.load() != asked.load(); answered.fetch_add(1)) dump("signal");
  if (heap.on) look();
  return heap.on ? kLookMs : kNever;
}

void on_request(int) {
  int saved_errno = errno;
  asked.fetch_add(1);
  wake_keeper();
  errno = saved_errno;
}

}  // namespace

void start_heap_switch() {
  if (!environment_path("HEAPPROFILE", heap.prefix, sizeof heap.prefix)) return;
  if (!start_heap_sampling()) {
    say("HEAPPROFILE: no memory for the heap's table");
    return;
  }
  heap.on = true;
  heap.format = environment_format();
  heap.allocation_interval =
      static_cast<double>(environment_number("HEAP_PROFILE_ALLOCATION_INTERVAL", 1 << 30));
  heap.free_interval =
      static_cast<double>(environment_number("HEAP_PROFILE_DEALLOCATION_INTERVAL", 0));
  heap.live_interval =
      static_cast<double>(environment_number("HEAP_PROFILE_INUSE_INTERVAL", 100 << 20));
  heap.time_interval_ns = environment_number("HEAP_PROFILE_TIME_INTERVAL", 0) * 1'000'000'000;
  heap.last_ns = monotonic_ns();
  int64_t signal = environment_number("HEAPPROFILESIGNAL", 0);
  if (signal == 0 && getenv("CPUPROFILE") == nullptr)
    signal = environment_number("CPUPROFILESIGNAL", 0);
  heap.has_signal = signal != 0 && take_request_signal(static_cast<int>(signal), on_request);
  if (signal != 0 && !heap.has_signal)
    say("signal %ld cannot be used to ask for heap profiles", signal);
  keep(answer_requests);
}

void end_heap_switch() {
  if (!heap.on) return;
  heap.on = false;
  char why[64];
  snprintf(why, sizeof why, "exiting, %.0f MB in use", heap_totals_now().live_bytes / (1 << 20));
  dump(why);
}

void heap_switch_in_child() {
  if (!heap.on) return;
  heap.number = 0;
  asked.store(0);
  answered.store(0);
  add_pid(heap.prefix, sizeof heap.prefix);
}

bool heap_switch_has_signal() {
  return heap.has_signal;
}

void heap_switch_in_daemon() {
  if (heap.on) keep(answer_requests);
}

}  // namespace assay::inproc
