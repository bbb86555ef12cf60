// The programs of programs/ with the kernel's helpers written anew, for one CPU.
#include <stdlib.h>
#include <string.h>

#define ASSAY_ON_HOST
#define on_exit on_task_exit  // stdlib.h has a function of that name
#include "capture/bpf/programs/assay.bpf.c"
#include "capture/bpf/testing/host_programs.h"

enum { kPieces = 8, kHostChunks = 64, kHostProcesses = 8 };

struct host_task {
  struct task_struct task;
  struct signal_struct signal;
  struct raw_regs regs;
  bool has_thread, has_cache;
  struct thread thread;
  struct cache cache;
  char stack[KERNEL_STACK_BYTES];
};

static struct host_task tasks[kHostTasks];
static struct {
  u64 address;
  size_t size;
  u8* bytes;
} pieces[kPieces];
static struct range* all_ranges;
static struct words* chunks[kHostChunks];
static struct process known[kHostProcesses];
static struct walk scratch[2];
static struct raw_scratch raw_scratches[2];
static u64 counts[kCounters];
static u8 ring[kHostRingBytes];
static size_t written, room;
static u8 listed[sizeof(struct wait_record)];
static size_t listed_bytes;
static u64 kernel_pcs[kKernelFrames];
static size_t kernel_count;
static u64 clock_ns;
static struct rq queue;
static struct cfs_rq fair_queue = {&queue};
static struct clock_gap gap;
int host_has_field;
static int current;

void host_reset(void) {
  memset(tasks, 0, sizeof tasks);
  for (int i = 0; i < kPieces; ++i) free(pieces[i].bytes);
  memset(pieces, 0, sizeof pieces);
  if (!all_ranges) all_ranges = malloc(sizeof(struct range) * kMostRanges);
  for (int i = 0; i < kHostChunks; ++i) free(chunks[i]), chunks[i] = 0;
  memset(known, 0, sizeof known);
  memset(raw_scratches, 0, sizeof raw_scratches);
  memset(counts, 0, sizeof counts);
  written = kernel_count = 0;
  room = sizeof ring;
  last_id = cache_count = 0;
  generation = 1;
  clock_ns = 1;
  host_has_field = 0;
  memset(&gap, 0, sizeof gap);
}

void host_count_delays(void) {
  host_has_field = 1;
}
void host_set_queued(int task, __u64 delay, __u64 since) {
  tasks[task].task.sched_info.run_delay = delay;
  tasks[task].task.sched_info.last_queued = since;
}
void host_set_scheduler_clock(__u64 ns) {
  queue.clock = ns;
}

void host_set_task(int task, int pid, int tgid, unsigned flags) {
  tasks[task].task.pid = pid;
  tasks[task].task.tgid = tgid;
  tasks[task].task.flags = flags;
  tasks[task].task.stack = tasks[task].stack;
  tasks[task].task.signal = &tasks[task].signal;
  tasks[task].task.se.cfs_rq = &fair_queue;
}
struct raw_regs* host_registers(int task) {
  return &tasks[task].regs;
}
void host_set_ran(int task, __u64 ns) {
  tasks[task].task.se.sum_exec_runtime = ns;
}
void host_set_time(__u64 ns) {
  clock_ns = ns;
}
void host_set_kernel_stack(const __u64* pcs, size_t count) {
  memcpy(kernel_pcs, pcs, count * 8);
  kernel_count = count;
}
void host_set_ring_room(size_t bytes) {
  room = bytes;
}

void host_map(__u64 address, const void* bytes, size_t size) {
  for (int i = 0; i < kPieces; ++i) {
    if (pieces[i].size && pieces[i].address != address) continue;
    free(pieces[i].bytes);
    pieces[i].address = address;
    pieces[i].size = size;
    pieces[i].bytes = malloc(size);
    memcpy(pieces[i].bytes, bytes, size);
    return;
  }
  abort();
}
struct range* host_ranges(void) {
  return all_ranges;
}
__u32* host_chunk(__u32 number) {
  if (number >= kHostChunks) return 0;
  if (!chunks[number]) chunks[number] = calloc(1, sizeof(struct words));
  return chunks[number]->word;
}

void host_watch(int tgid, __u64 code) {
  u32 key = tgid;
  struct process process = {.code = code, .tgid = key};
  bpf_map_update_elem(&processes, &key, &process, BPF_ANY);
  generation += 1;
  for (int i = 0; i < kHostTasks; ++i)
    if (tasks[i].task.tgid == tgid) adopt(&tasks[i].task);
}
int host_is_watched(int tgid, __u64* code) {
  u32 key = tgid;
  struct process* process = bpf_map_lookup_elem(&processes, &key);
  if (process) *code = process->code;
  return process != 0;
}

void host_switch(int leaving, int coming, int preempted, unsigned state) {
  u64 ctx[4] = {preempted, (u64)&tasks[leaving].task, (u64)&tasks[coming].task, state};
  current = leaving;
  on_switch(ctx);
  current = coming;
}
void host_wake(int waker, int woken, int by_interrupt) {
  u64 elsewhere[1] = {(u64)&tasks[woken].task};
  u64* on_stack = (u64*)tasks[waker].stack + 16;
  *on_stack = elsewhere[0];
  current = waker;
  on_waking(by_interrupt ? elsewhere : on_stack);
}
void host_sample(int task) {
  current = task;
  on_sample(0);
}
void host_fork(int parent, int child) {
  u64 ctx[2] = {(u64)&tasks[parent].task, (u64)&tasks[child].task};
  on_fork(ctx);
}
void host_exec(int task) {
  u64 ctx[1] = {(u64)&tasks[task].task};
  on_exec(ctx);
}
void host_exit(int task, int threads_left) {
  u64 ctx[1] = {(u64)&tasks[task].task};
  tasks[task].signal.live.counter = threads_left;
  on_exit(ctx);
}
size_t host_list_open_wait(int task, void* into, size_t size) {
  struct bpf_iter_meta meta = {0};
  struct bpf_iter__task ctx = {&meta, &tasks[task].task};
  listed_bytes = 0;
  list_open_waits(&ctx);
  memcpy(into, listed, listed_bytes < size ? listed_bytes : size);
  return listed_bytes;
}
size_t host_take_records(void* into, size_t size) {
  size_t taken = written < size ? written : size;
  memcpy(into, ring, taken);
  written = 0;
  return taken;
}
__u64 host_counter(__u32 which) {
  return counts[which];
}

static struct process* find_process(u32 tgid) {
  for (int i = 0; i < kHostProcesses; ++i)
    if (known[i].tgid == tgid) return &known[i];
  return 0;
}

void* bpf_map_lookup_elem(void* map, const void* key) {
  u32 number = *(const u32*)key;
  if (map == &ranges) return number < kMostRanges ? &all_ranges[number] : 0;
  if (map == &tables) return number < kHostChunks ? chunks[number] : 0;
  if (map == &processes) return find_process(number);
  if (map == &counters) return &counts[number];
  if (map == &walks) return &scratch[number];
  if (map == &clock_gaps) return &gap;
  if (map == &raws) return &raw_scratches[number];
  if (map == &rings) return ring;
  return map;  // a chunk
}
long bpf_map_update_elem(void* map, const void* key, const void* value, __u64 flags) {
  struct process* place = find_process(*(const u32*)key);
  if (map != &processes) return -1;
  if (!place) place = find_process(0);
  if (!place) return -1;
  *place = *(const struct process*)value;
  return 0;
}
long bpf_map_delete_elem(void* map, const void* key) {
  struct process* place = find_process(*(const u32*)key);
  if (place) memset(place, 0, sizeof *place);
  return 0;
}
void* bpf_task_storage_get(void* map, struct task_struct* task, void* value, __u64 flags) {
  struct host_task* host = (struct host_task*)task;
  bool* has = map == &threads ? &host->has_thread : &host->has_cache;
  if (!*has && !(flags & BPF_LOCAL_STORAGE_GET_F_CREATE)) return 0;
  *has = true;
  return map == &threads ? (void*)&host->thread : (void*)&host->cache;
}
long bpf_task_storage_delete(void* map, struct task_struct* task) {
  struct host_task* host = (struct host_task*)task;
  host->has_cache = false;
  memset(&host->cache, 0, sizeof host->cache);
  return 0;
}
long bpf_probe_read_user(void* into, __u32 size, const void* from) {
  u64 at = (u64)from;
  for (int i = 0; i < kPieces; ++i) {
    if (!pieces[i].bytes || at < pieces[i].address || at + size > pieces[i].address + pieces[i].size) continue;
    memcpy(into, pieces[i].bytes + (at - pieces[i].address), size);
    return 0;
  }
  return -14;
}
long bpf_probe_read_kernel(void* into, __u32 size, const void* from) {
  memcpy(into, from, size);
  return 0;
}
long bpf_get_stack(void* ctx, void* into, __u32 size, __u64 flags) {
  memcpy(into, kernel_pcs, kernel_count * 8);
  return kernel_count * 8;
}
long bpf_loop(__u32 rounds, void* step_of, void* context, __u64 flags) {
  long (*step_once)(u32, void*) = step_of;
  for (u32 i = 0; i < rounds; ++i)
    if (step_once(i, context)) return i + 1;
  return rounds;
}
void* bpf_ringbuf_reserve(void* to, __u64 size, __u64 flags) {
  if (written + size > room) return 0;
  u8* at = ring + written;
  written += size;
  return at;
}
void bpf_ringbuf_submit(void* data, __u64 flags) {}
long bpf_ringbuf_output(void* to, void* data, __u64 size, __u64 flags) {
  void* at = bpf_ringbuf_reserve(to, size, flags);
  if (!at) return -1;
  memcpy(at, data, size);
  return 0;
}
long bpf_seq_write(void* seq, const void* data, __u32 size) {
  memcpy(listed, data, size);
  listed_bytes = size;
  return 0;
}
long bpf_task_pt_regs(struct task_struct* task) {
  return (long)&((struct host_task*)task)->regs;
}
struct task_struct* bpf_get_current_task_btf(void) {
  return &tasks[current].task;
}
__u64 bpf_get_current_pid_tgid(void) {
  return (u64)tasks[current].task.tgid << 32 | (u32)tasks[current].task.pid;
}
__u32 bpf_get_smp_processor_id(void) {
  return 0;
}
__u64 bpf_ktime_get_ns(void) {
  return clock_ns;
}
