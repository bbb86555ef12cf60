// The few kernel types that the programs read, by name: libbpf finds the offsets of the running
// kernel (CO-RE), so no dump of one kernel's types is needed.
#pragma once

// clang-format off: the helpers need the types first.
#ifdef ASSAY_ON_HOST  // the unit tests run the programs in user space, with helpers of their own
#include "capture/bpf/testing/host_helpers.h"
#else
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#endif
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
// clang-format on

typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;

#define BY_NAME __attribute__((preserve_access_index))

typedef struct {
  int counter;
} BY_NAME atomic_t;

struct signal_struct {
  atomic_t live;
} BY_NAME;

// A CPU's run queue.
struct rq {
  u64 clock;  // the time that the scheduler counts with; stands still while it decides
} BY_NAME;

struct cfs_rq {
  struct rq* rq;
} BY_NAME;

struct sched_entity {
  u64 sum_exec_runtime;
  struct cfs_rq* cfs_rq;  // of the CPU that it is on; for tasks of every class
} BY_NAME;

// The scheduler's own account of the time on a run queue, in the clock of the queue.
struct sched_info {
  unsigned long long run_delay;    // of all waits that are over
  unsigned long long last_queued;  // when it joined the queue it is on; 0: on none
} BY_NAME;

struct task_struct {
  unsigned int __state;
  unsigned int flags;
  void* stack;
  int pid, tgid;
  struct signal_struct* signal;
  struct sched_entity se;
  struct sched_info sched_info;
} BY_NAME;

struct pt_regs {
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
      flags, sp, ss;
} BY_NAME;

struct seq_file;
struct bpf_iter_meta {
  struct seq_file* seq;
} BY_NAME;
struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
} BY_NAME;
