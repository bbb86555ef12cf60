// The CPU profiler: where the threads of this process spend their CPU time.
//
// Every thread has a timer on its own CPU clock; its signal's handler walks the stack it
// interrupted and adds it to a table. Threads that begin meanwhile are first sampled as
// young_threads.h describes. The handler neither locks nor allocates, and preserves errno. One
// profile at a time. start/stop are called from any thread, not from signal handlers; they never
// end the process: a sentence says why a profile could not start. If the host handles SIGPROF
// itself, a real-time signal is used instead. The handler stays installed after a profile, for
// signals that are still on their way.
#pragma once

#include <cstdint>

#include "inject/inproc/write/profile.h"
#include "inject/inproc/cpu/sample_table.h"

namespace assay::inproc {

inline constexpr uint32_t kMaxCpuFrames = 192;
inline constexpr uint32_t kDefaultHz = 100;
inline constexpr uint32_t kMaxHz = 4000;

struct CpuPlan {
  uint32_t hz = kDefaultHz;
  bool wall_clock = false;
  int signal = 0;       // 0: SIGPROF, or another where the host uses that
  bool scan = true;     // look for new threads; false: only those that begin through our hook
  bool events = false;  // also keep every sample with its time (trace)
};

// One sample in time, for trace.
struct CpuEvent {
  int64_t time_ns;  // CLOCK_MONOTONIC
  uint32_t tid;
  uint32_t row;  // in the table
};

struct CpuResult {
  SampleTable* table = nullptr;  // count: samples, value: ns; valid until the next start
  const CpuEvent* events = nullptr;
  uint64_t event_count = 0;
  int64_t period_ns = 0, time_ns = 0, duration_ns = 0;
  uint64_t lost = 0;  // samples that found no room, or were due while the signal was blocked
  uint32_t threads = 0, refused = 0;
  int signal = 0;
};

// nullptr: it runs. Else a sentence without a full stop.
const char* start_cpu_profile(const CpuPlan& plan);
// False: none was running. The result belongs to the caller until finish_cpu_profile(), which must
// follow: until then no other profile can start.
bool stop_cpu_profile(CpuResult& result);
void finish_cpu_profile();
bool cpu_profile_runs();

// From a thread that has just begun (the pthread_create hook).
void cpu_profile_new_thread();
// From any thread that may be new: it is sampled from now on, not only after the next scan. Cheap
// when it is known.
void cpu_profile_see_thread();
void cpu_profile_forget();  // in a forked child

// The samples as a profile in `arena`. False: no memory.
bool make_cpu_profile(const CpuResult& result, Arena& arena, Profile& profile);

}  // namespace assay::inproc
