// The few kernel types that the programs read, by name: libbpf finds the offsets of the running
// kernel (CO-RE), so no dump of one kernel's types is needed.
#pragma once

// clang-format off: the helpers need the types first.
#ifdef ASSAY_ON_HOST  // the unit tests run the programs in user space, with helpers of their own
#include "capture/bpf/testing/host_helpers.h"
#else
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

struct sched_entity {
  u64 sum_exec_runtime;
} BY_NAME;

struct task_struct {
  unsigned int __state;
  unsigned int flags;
  void* stack;
  int pid, tgid;
  struct signal_struct* signal;
  struct sched_entity se;
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
