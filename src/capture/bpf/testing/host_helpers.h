// The kernel's helpers of the BPF programs, as functions of a test: host_programs.c defines them.
#pragma once

#include <linux/types.h>
#include <stddef.h>

#define SEC(name)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val)* name
#define __array(name, val) __typeof__(val)* name[]
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define MASK(value, mask) ((value) &= (mask))

// Whether this "kernel" has the fields of the scheduler's own account.
extern int host_has_field;
#define bpf_core_field_exists(field) host_has_field

struct task_struct;

void* bpf_map_lookup_elem(void* map, const void* key);
long bpf_map_update_elem(void* map, const void* key, const void* value, __u64 flags);
long bpf_map_delete_elem(void* map, const void* key);
void* bpf_task_storage_get(void* map, struct task_struct* task, void* value, __u64 flags);
long bpf_task_storage_delete(void* map, struct task_struct* task);
long bpf_probe_read_user(void* into, __u32 size, const void* from);
long bpf_probe_read_kernel(void* into, __u32 size, const void* from);
long bpf_get_stack(void* ctx, void* into, __u32 size, __u64 flags);
long bpf_loop(__u32 rounds, void* step, void* context, __u64 flags);
long bpf_ringbuf_output(void* ring, void* data, __u64 size, __u64 flags);
void* bpf_ringbuf_reserve(void* ring, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void* data, __u64 flags);
long bpf_seq_write(void* seq, const void* data, __u32 size);
long bpf_task_pt_regs(struct task_struct* task);
struct task_struct* bpf_get_current_task_btf(void);
__u64 bpf_get_current_pid_tgid(void);
__u32 bpf_get_smp_processor_id(void);
__u64 bpf_ktime_get_ns(void);
