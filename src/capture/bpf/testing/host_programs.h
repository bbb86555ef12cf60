// The BPF programs of the backend in user space: a test plays the kernel.
//
// host_programs.c compiles programs/assay.bpf.c for this machine. In: tasks, their registers and
// memory, and events; out: what the programs wrote into their ring. One CPU, one thread. What the
// verifier and the kernel's own helpers do is for tests/kernel.
#pragma once

#include <stddef.h>

#include "capture/bpf/shared.h"

#ifdef __cplusplus
extern "C" {
using assay::capture::bpf::range;
using assay::capture::bpf::raw_regs;
#endif

enum { kHostTasks = 8, kHostIsKernelThread = 0x00200000, kHostRingBytes = 1 << 20 };

void host_reset(void);  // no tasks, no processes, empty maps
void host_set_task(int task, int pid, int tgid, unsigned flags);
struct raw_regs* host_registers(int task);
void host_set_ran(int task, __u64 ns);
void host_set_time(__u64 ns);
// From now on this kernel has an account of run-queue time. Its clock is another than host_time's.
void host_count_delays(void);
void host_set_scheduler_clock(__u64 ns);
void host_set_queued(int task, __u64 delay, __u64 since);  // of waits that are over; 0: on no queue
void host_set_kernel_stack(const __u64* pcs, size_t count);
void host_set_ring_room(size_t bytes);

// A piece of the user's memory; what lies outside the pieces cannot be read.
void host_map(__u64 address, const void* bytes, size_t size);
struct range* host_ranges(void);
__u32* host_chunk(__u32 number);  // zero the first time

void host_watch(int tgid, __u64 code);
int host_is_watched(int tgid, __u64* code);

void host_switch(int leaving, int coming, int preempted, unsigned state);
void host_wake(int waker, int woken, int by_interrupt);
void host_sample(int task);
void host_fork(int parent, int child);
void host_exec(int task);
void host_exit(int task, int threads_left);
// The records that the task iterator writes for this task.
size_t host_list_open_wait(int task, void* into, size_t size);

// The records so far, one behind the other; the ring is empty then.
size_t host_take_records(void* into, size_t size);
__u64 host_counter(__u32 which);

#ifdef __cplusplus
}
#endif
