// Vitals: the numbers that verdicts and detectors are decided by, each known or absent.
//
// Each is declared once, below, with its unit and a sentence that says it; {} is its value. The
// struct's fields, the names in rule files and JSON, and the table in docs/rules.md come from that
// list. "Busy" is running + run-queue + blocked without idle, of the pools that do the work
// ("serving": at least 3 % of the target's CPU time). Pure; vitals.h computes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::analysis {

enum class VitalUnit : uint8_t {
  share,  // 0–1
  cpus,
  count,
  per_second,
  seconds,
  milliseconds,
  microseconds,
  bytes,
  ratio,  // of two counts
  flag,   // 0 or 1
};
std::string_view vital_unit_id(VitalUnit unit);

// clang-format off
#define ASSAY_VITALS(VITAL)                                                                         \
  /* The window and the machine. */                                                                 \
  VITAL(window_s, seconds, "the window is {} long")                                                 \
  VITAL(samples, count, "{} on-CPU samples were taken")                                             \
  VITAL(usable_cpus, cpus, "the target may use {} CPUs")                                            \
  VITAL(host_cpus, cpus, "the host has {} CPUs")                                                    \
  VITAL(cpus_used, cpus, "the target keeps {} CPUs busy")                                           \
  VITAL(utilisation, share, "the target uses {} of the CPUs that it may use")                       \
  VITAL(host_busy, share, "{} of the host's CPU time is in use")                                    \
  VITAL(other_cpus, cpus, "other programs keep {} CPUs busy")                                       \
  VITAL(generator_cpus, cpus, "the load generator keeps {} CPUs busy")                              \
  VITAL(connected_cpus, cpus, "programs that are connected to the target keep {} CPUs busy")        \
  VITAL(stranger_cpus, cpus, "programs that have nothing to do with the target keep {} CPUs busy")  \
  VITAL(softirq_cpus, cpus, "soft interrupts keep {} CPUs busy")                                    \
  /* Parts of the busy time of the serving pools: from running to other_waits they add up to 1. */  \
  VITAL(running, share, "{} of busy time is running")                                               \
  VITAL(runqueue, share, "{} of busy time is spent waiting for a CPU")                              \
  VITAL(wakeup, share, "{} of busy time passes between a wake-up and the run queue")                \
  VITAL(lock, share, "{} of busy time is spent waiting for locks")                                  \
  VITAL(condition, share, "{} of busy time is spent waiting on conditions")                         \
  VITAL(futex, share, "{} of busy time is spent waiting on futexes of unknown use")                 \
  VITAL(receive, share, "{} of busy time is spent waiting for data from sockets")                   \
  VITAL(send, share, "{} of busy time is spent waiting for room in send buffers")                   \
  VITAL(disk, share, "{} of busy time is spent waiting for disks")                                  \
  VITAL(timer, share, "{} of busy time is spent sleeping")                                          \
  VITAL(poll, share, "{} of busy time is spent waiting for any of several events")                  \
  VITAL(fault, share, "{} of busy time is spent waiting for page faults")                           \
  VITAL(pipe, share, "{} of busy time is spent waiting for pipes")                                  \
  VITAL(accelerator, share, "{} of busy time is spent asleep until an accelerator is done")         \
  VITAL(other_waits, share, "{} of busy time is spent in other waits")                              \
  /* Of `condition` and `futex`: what the thread that ended the wait was itself waiting for. */     \
  VITAL(handoff_receive, share, "{} of busy time is spent waiting for threads that wait for data")  \
  VITAL(handoff_disk, share, "{} of busy time is spent waiting for threads that wait for disks")    \
  VITAL(idle, share, "{} of all thread time is spent waiting for work")                             \
  VITAL(runqueue_of_ready, share, "threads that could run wait for a CPU {} of that time")          \
  VITAL(preempted, share, "{} of the run-queue time follows a preemption")                          \
  /* CPU time by the roles of categories. */                                                        \
  VITAL(allocator_cpu, share, "{} of CPU time goes into allocating and freeing memory")             \
  VITAL(spin_cpu, share, "{} of CPU time is spent spinning")                                        \
  VITAL(accelerator_cpu, share, "{} of CPU time is spent spinning until an accelerator is done")    \
  VITAL(network_cpu, share, "{} of CPU time is the kernel's network stack")                         \
  VITAL(collector_cpu, share, "{} of CPU time is garbage collection")                               \
  VITAL(kernel_cpu, share, "{} of CPU time is spent in the kernel")                                 \
  VITAL(lock_cpu, share, "{} of CPU time goes into taking and releasing locks")                     \
  /* The busiest thread or small pool. */                                                           \
  VITAL(serial_ready, share, "the busiest thread or small pool runs or could run {} of the time")   \
  VITAL(serial_on, share, "the busiest thread or small pool runs {} of the time")                   \
  VITAL(serial_next, share, "the next busiest thread or pool runs or could run {} of the time")     \
  VITAL(serial_threads, count, "{} threads run or could run nearly all the time")                   \
  /* How many threads of the serving pools run or could run at once. */                             \
  VITAL(active, share, "a thread runs or could run {} of the time")                                 \
  VITAL(one_at_a_time, share, "only one thread runs or could run {} of the time that any does")     \
  VITAL(several_at_work, share, "several threads at once are not idle {} of the time")              \
  VITAL(busiest_thread, share, "one thread has {} of the running time")                             \
  /* Limits set from outside. */                                                                    \
  VITAL(throttled_periods, share, "the CPU quota was used up in {} of its periods")                 \
  VITAL(throttled_wall, share, "the CPU quota stopped the target {} of the time")                   \
  VITAL(bound, flag, "affinity, cpuset or quota allow less than the host has")                        \
  /* Accelerators. */                                                                               \
  VITAL(accelerator_busy, share, "the busiest accelerator of the target computes {} of the time")   \
  /* Storage and sockets. */                                                                        \
  VITAL(psi_io, share, "some task of the host waited for storage {} of the time")                   \
  VITAL(disk_bytes_per_s, per_second, "the target reads and writes {} bytes of storage a second")   \
  VITAL(recv_q, share, "received data waited to be read {} of the time")                            \
  VITAL(backlog, share, "connections waited to be accepted {} of the time")                         \
  VITAL(backlog_full, share, "the accept queue was {} full on average")                             \
  VITAL(send_q, share, "data waited to be sent {} of the time")                                     \
  VITAL(held_by_peer, share, "a connection's receiver held back sending {} of the time")            \
  VITAL(held_by_buffer, share, "a connection's send buffer held back sending {} of the time")       \
  VITAL(retransmits_per_s, per_second, "{} segments a second were sent again")                      \
  VITAL(inbound, count, "{} connections that clients opened were open on average")                  \
  VITAL(outbound, count, "{} connections to other servers were open on average")                    \
  VITAL(bytes_out_per_request, bytes, "{} were sent per request")                                   \
  /* Shapes of waits. */                                                                            \
  VITAL(delayed_ack, share, "{} of the waits on sockets last 40 or 200 ms")                         \
  VITAL(empty_polls, share, "{} of the polls began within 10 µs of the one before")                   \
  VITAL(empty_wakeups, share, "{} of the waits on conditions began within 10 µs of the one before")   \
  VITAL(switches_per_s, per_second, "threads left the CPU {} times a second")                       \
  /* Memory. */                                                                                     \
  VITAL(minor_faults_per_s, per_second, "{} page faults a second needed no storage")                \
  VITAL(major_faults_per_s, per_second, "{} page faults a second read from storage")                \
  /* Load, when it was measured. */                                                                 \
  VITAL(requests_per_s, per_second, "{} requests a second were answered")                           \
  VITAL(errors, share, "{} of the requests failed")                                                 \
  VITAL(drift, share, "throughput changed by {} over the window")                                   \
  VITAL(generator_saturated, flag, "the load generator was itself the limit")                         \
  VITAL(open_loop, flag, "requests came at a rate of their own, answered or not")                     \
  VITAL(latency_ms, milliseconds, "half of the requests took at most {}")                           \
  VITAL(concurrency, count, "{} requests were open at once")                                        \
  VITAL(unaccounted, share, "no busy thread explains {} of the latency")                            \
  VITAL(streams_per_connection, count, "{} streams shared a connection")                            \
  VITAL(cpu_us_per_request, microseconds, "a request takes {} of CPU time")                         \
  VITAL(kernel_us_per_request, microseconds, "a request takes {} of CPU time in the kernel")        \
  VITAL(switches_per_request, count, "threads left the CPU {} times per request")                   \
  VITAL(blocked_us_per_request, microseconds, "a request takes {} of blocked time")                 \
  /* Quality. */                                                                                    \
  VITAL(lost, share, "{} of the records were lost")                                                 \
  VITAL(unresolved, share, "{} of CPU time is in functions without names")                          \
  /* Counters that only some machines have, and moves between CPUs. */                              \
  VITAL(hitm, share, "{} of the misses found their line changed by another core")                   \
  VITAL(migrations_per_s, per_second, "threads moved to another CPU {} times a second")             \
  VITAL(ipc, ratio, "{} instructions were retired per cycle")                                       \
  VITAL(branch_mpki, ratio, "{} branches per 1,000 instructions were mispredicted")                 \
  VITAL(llc_mpki, ratio, "{} last-level cache misses came with 1,000 instructions")                 \
  VITAL(llc_misses_per_s, per_second, "{} last-level cache misses happened a second")
// clang-format on

struct Vitals {
  using Number = std::optional<double>;
#define ASSAY_FIELD(name, unit, sentence) Number name;
  ASSAY_VITALS(ASSAY_FIELD)
#undef ASSAY_FIELD
};

struct VitalRow {
  std::string_view id;  // in rule files and JSON
  Vitals::Number Vitals::*field;
  VitalUnit unit;
  std::string_view sentence;  // {} is the value

  const Vitals::Number& of(const Vitals& vitals) const { return vitals.*field; }
  // The sentence with a value in its unit: "the target uses 41.0 % of the CPUs that it may use".
  std::string say(double value) const;
};

std::span<const VitalRow> vital_rows();
const VitalRow* find_vital(std::string_view id);  // null: there is none of that name

}  // namespace assay::analysis
