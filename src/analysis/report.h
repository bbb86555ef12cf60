// Report: everything a run says, computed once; text, Markdown and JSON only lay it out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/profile/categories.h"
#include "analysis/heap/heap_summary.h"
#include "analysis/locks/locks.h"
#include "analysis/profile/profile.h"
#include "analysis/profile/quality.h"
#include "analysis/time/thread_time.h"
#include "analysis/load/workload.h"

namespace assay::analysis {

// What verdicts and detectors are decided by; vitals.h says what each is.
struct Vitals {
  using Number = std::optional<double>;
  // The window and the machine.
  Number window_s, samples, usable_cpus, host_cpus, cpus_used, utilisation, host_busy, other_cpus,
      generator_cpus, softirq_cpus;
  // Thread time of the serving pools, as shares of their busy time.
  Number running, runqueue, lock, condition, futex, receive, send, disk, timer, poll, fault, pipe,
      other_waits;
  // Of `condition` and `futex`: what the thread that ended the wait was itself waiting for.
  Number handoff_receive, handoff_disk, handoff_timer, handoff_lock;
  Number idle;               // of all wall time
  Number runqueue_of_ready;  // run-queue / (running + run-queue)
  Number preempted;          // of the run-queue time, what was taken away rather than not yet given
  // CPU by role, as shares of CPU time.
  Number allocator_cpu, spin_cpu, network_cpu, collector_cpu, lock_cpu;
  // The busiest thread or small pool.
  Number serial_ready, serial_on, serial_next, serial_threads;
  // Limits set from outside.
  Number throttled_periods, throttled_wall, bound;  // bound: usable CPUs < CPUs of the host
  // Disk, sockets.
  Number psi_io, disk_bytes_per_s, recv_q, backlog, backlog_full, send_q, held_by_peer,
      held_by_buffer, retransmits_per_s, inbound, outbound, bytes_out_per_request;
  // Shapes of waits.
  Number delayed_ack, empty_polls, empty_wakeups, switches_per_s;
  // Memory.
  Number minor_faults_per_s, major_faults_per_s;
  // Load.
  Number requests_per_s, errors, drift, generator_saturated, open_loop, latency_ms, concurrency,
      unaccounted, streams_per_connection, cpu_us_per_request, kernel_us_per_request,
      switches_per_request, blocked_us_per_request;
  // Quality.
  Number lost, unresolved;
  // Of counters that only some machines have, and of migrations between CPUs.
  Number hitm, migrations_per_s, ipc, branch_mpki, llc_mpki, llc_misses_per_s;
};

struct ThreadCpu {  // by thread of the report
  std::array<int64_t, kCategoryRoles> role_ns{};
  int64_t sampled_ns = 0;
};

struct Claim {
  std::string kind;  // as in design.md's list
  std::string sentence;
  double confidence = 0;             // 0–1
  std::vector<std::string> numbers;  // what it rests on
};

struct Verdict : Claim {
  std::vector<Claim> secondary;       // also true, less important; or what it would have been
  std::vector<std::string> withheld;  // why, when kind is "withheld"
  std::vector<std::string> remedies;  // what to do about it, in the same order
  std::string next_step;              // the next experiment, in words
  std::string next_command;           // and as a command; may be empty
};

struct Where {
  std::string symbol;
  std::string file;
  uint32_t line = 0;
};

struct Evidence {
  std::string text;                 // "1,234 samples in malloc below kv::Store::put"
  std::vector<FrameText> frames;    // leaf first; may be empty
  std::vector<std::string> source;  // the lines around `Where`, when known
  uint32_t source_line = 0;         // of the first of them
};

struct Diagnosis {
  std::string id;
  std::string title;
  std::string cause;  // "on-CPU", "contention", "waiting", "build", "host"
  std::string of;     // what `share` is a share of: "CPU time", "busy time", …
  Estimate share;
  std::string because;
  std::string recommendation;
  Where where;
  std::vector<Evidence> evidence;
  std::optional<double> gain_upper_bound;  // throughput: 0.25 is +25 %; absent: cannot be said
  std::string gain_text;
  bool withholds = false;
};

struct NotBottleneck {
  std::string what;
  std::string text;
  double share = 0;
};

struct SuspectAnswer {
  std::string pattern;
  std::string answer;  // "confirmed", "refuted", "not measurable"
  std::string text;
  double cpu_share = 0, blocked_share = 0;
  std::vector<Evidence> evidence;
};

struct Report {
  std::string run_path;
  model::RunInfo info;
  int64_t window_ns = 0;
  int cpus = 0;  // of the host; 0 when the run does not say
  std::vector<model::Fact> facts;
  Quality quality;
  TimeSplit thread_time;
  std::vector<ProcessTime> processes;
  std::vector<ThreadTime> threads;
  std::vector<ThreadCpu> thread_cpu;                    // beside threads
  std::array<RoleCaller, kCategoryRoles> role_callers;  // who causes which CPU time
  OnCpuProfile on_cpu;
  OffCpuProfile off_cpu;
  std::vector<CategoryShare> categories;
  std::vector<LockSummary> locks;
  HeapSummary heap;
  bool heap_alone = false;  // a heap profile, taken or imported, and nothing of time
  Workload workload;
  Vitals vitals;
  Verdict verdict;
  std::vector<Diagnosis> findings;  // worst first
  std::vector<NotBottleneck> not_bottlenecks;
  std::vector<SuspectAnswer> suspects;
  std::vector<std::string> rule_errors;
  std::string selection;  // which part of the run this is of; empty: all of it
};

}  // namespace assay::analysis
