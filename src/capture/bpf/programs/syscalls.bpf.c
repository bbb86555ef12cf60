// Counts system calls of the watched processes, and of all that they create, by process and number.
// clang-format off: the helpers need the types first.
#include <linux/bpf.h>
#include <linux/types.h>

#include "kernel_types.h"
// clang-format on

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, u32);
  __type(value, u8);
} watched SEC(".maps");

// One value per CPU: counting needs no lock.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 16384);
  __type(key, u64);  // process id in the upper half, number of the call in the lower
  __type(value, u64);
} calls SEC(".maps");

SEC("raw_tp/sys_enter")
int on_sys_enter(struct bpf_raw_tracepoint_args* ctx) {
  u32 tgid = bpf_get_current_pid_tgid() >> 32;
  if (!bpf_map_lookup_elem(&watched, &tgid)) return 0;
  u64 key = (u64)tgid << 32 | (u32)ctx->args[1];
  u64* count = bpf_map_lookup_elem(&calls, &key);
  if (count) {
    *count += 1;
    return 0;
  }
  u64 one = 1;
  bpf_map_update_elem(&calls, &key, &one, BPF_ANY);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64* ctx) {
  struct task_struct* parent = (struct task_struct*)ctx[0];
  struct task_struct* child = (struct task_struct*)ctx[1];
  u32 from = parent->tgid, to = child->tgid;
  u8 yes = 1;
  if (from != to && bpf_map_lookup_elem(&watched, &from))
    bpf_map_update_elem(&watched, &to, &yes, BPF_ANY);
  return 0;
}
