// The programs of the BPF backend: switches, wake-ups, samples, forks, execs and exits.
//
// sched_switch and sched_waking run with interrupts off and so never interrupt one another on a
// CPU; samples may interrupt them and have scratch memory of their own.
#include "cache.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PF_KTHREAD 0x00200000
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_DEAD 0x0080
#define SYSCALL_FUTEX 202
#define NO_SYSCALL 0xffff
#define KERNEL_STACK_BYTES 16384

enum key_kind { kKeyWait, kKeyUninterruptible, kKeyPreempted, kKeyWaker };

// The state of a thread of the target; null for any other thread. A thread gets its state when it
// starts or is first listed (adopt), never at a switch: most switches are between other threads and
// must cost as little as possible.
static __always_inline struct thread* thread_of(struct task_struct* task) {
  return bpf_task_storage_get(&threads, task, 0, 0);
}

// Whether this kernel counts run-queue time where it can be read.
static __always_inline bool counts_delays(struct task_struct* task) {
  return bpf_core_field_exists(task->sched_info.run_delay) &&
         bpf_core_field_exists(task->se.cfs_rq);
}

// Run-queue time that the kernel has counted for a thread, of the waits that are over.
static __always_inline u64 delay_of(struct task_struct* task) {
  return counts_delays(task) ? task->sched_info.run_delay : 0;
}

static __always_inline struct thread* adopt(struct task_struct* task) {
  struct thread* thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!thread) {
    count(kCountNoMemory);
  } else if (!thread->seen && thread->ran == 0) {
    thread->ran = task->se.sum_exec_runtime;
    thread->delayed = delay_of(task);
  }
  return thread;
}

// The present moment as the scheduler counts it, in CLOCK_MONOTONIC. When a wake-up takes the CPU
// at once, the scheduler's clock stands still from the wake-up on: the kernel counts the time until
// the switch as running time of the thread that comes. The gap between the clocks is the smallest
// that was seen; it may grow by 1/4096, because CLOCK_MONOTONIC is adjusted.
// `task` is one that this CPU switches from or to.
static __always_inline u64 scheduler_now(struct task_struct* task, u64 now) {
  u32 zero = 0;
  struct clock_gap* clock = bpf_map_lookup_elem(&clock_gaps, &zero);
  if (!clock || !counts_delays(task)) return now;
  u64 queue_clock = task->se.cfs_rq->rq->clock;
  u64 gap = now - queue_clock;
  u64 most = clock->gap + ((now - clock->at) >> 12);
  if (clock->at == 0 || (long long)(gap - most) < 0) most = gap;
  clock->gap = most;
  clock->at = now;
  return queue_clock + most;
}

// Run-queue time of the wait that ends now. The scheduler adds the last part, since last_queued,
// after this program.
static __always_inline u64 queued_since(struct task_struct* task, struct thread* thread) {
  if (!counts_delays(task)) return 0;
  u64 last = task->sched_info.last_queued, clock = task->se.cfs_rq->rq->clock;
  u64 queued = task->sched_info.run_delay - thread->delayed;
  return last && clock > last ? queued + clock - last : queued;
}

// Which ranges the thread's process has; looked up when any process's have changed.
static __always_inline u64 code_of(struct thread* thread, u32 tgid) {
  u32 now = *(volatile unsigned int*)&generation;
  if (thread->generation == now) return thread->code;
  struct process* process = bpf_map_lookup_elem(&processes, &tgid);
  thread->code = process && process->tgid == tgid ? process->code : 0;
  thread->generation = now;
  return thread->code;
}

// The stack of the current task, from the cache or by walking; with its kernel part unless it is a
// waker's.
static __always_inline void find_stack(void* ctx, struct task_struct* task, struct thread* thread,
                                       struct pt_regs* regs, u64 now, u32 key, bool with_kernel,
                                       struct found_stack* found) {
  u32 zero = 0;
  struct walk* w = bpf_map_lookup_elem(&walks, &zero);
  if (!w) return;
  u64 ip = regs->ip, sp = regs->sp, fp = regs->bp;
  u64 code = code_of(thread, task->tgid);
  // Truth mode needs walks, not cache hits.
  struct cache* cache = truth_one_in ? 0 : cache_of(task, thread);
  w->now = now;
  w->tid = task->pid;
  w->tgid = task->tgid;
  w->regs = (u64)regs;
  w->ip = ip;
  w->base = sp;
  w->fp = fp;
  u32 number = cache ? find_way(w, cache, key, code) : kWays;
  if (cache && number < kWays) {
    struct way* way = &cache->ways[number];
    count(kCountHits);
    if (check_cache) check_hit(w, way, ip, sp, fp);
    found->user = way->user_stack;
    way->hits += 1;
    if (with_kernel && ((way->hits & 255) == 0 || now - way->kernel_at > 10000000)) {
      way->kernel_stack = kernel_stack(ctx, w, way->kernel_hash, way->kernel_stack);
      way->kernel_hash = w->hash;
      way->kernel_at = now;
    }
    found->kernel = way->kernel_stack;
    return;
  }
  walk_stack(w, ip, sp, fp, code);
  if (!cache) w->is_cacheable = 0;
  number = w->victim;
  MASK(number, 7);
  struct way* way = cache ? &cache->ways[number] : 0;
  w->which = 0;
  w->replaces = way && w->is_cacheable && way->is_used ? way->user_stack : 0;
  u32 id = emit_walk(w);
  found->user = id;
  found->once = w->flags & kStackOnce;
  if (!w->is_cacheable) count(kCountUncached);
  if (!way || !id || !w->is_cacheable) {
    if (with_kernel) found->kernel = kernel_stack(ctx, w, 0, 0);
    return;
  }
  u32 replaced = way->kernel_stack;
  cache->ip[number] = ip;
  cache->sp[number] = sp;
  cache->key[number] = key;
  cache->next += 1;
  keep(w, way, fp, id);
  if (!with_kernel) return;
  found->kernel = kernel_stack(ctx, w, 0, replaced);
  way->kernel_stack = found->kernel;
  way->kernel_hash = w->hash;
  way->kernel_at = now;
}

// The owner's tid stored in a glibc mutex, when the thread waits for one: it waits while the lock
// word is 2, and the owner is stored 8 bytes after it.
static __always_inline u32 mutex_owner(struct pt_regs* regs, u64 address) {
  u32 operation = regs->si & 0x7f, owner = 0;
  if ((operation != 0 && operation != 9) || (u32)regs->dx != 2) return 0;
  if (bpf_probe_read_user(&owner, sizeof owner, (void*)(address + 8))) return 0;
  return owner;
}

static __always_inline void fill_wait(struct wait_record* record, struct task_struct* task,
                                      struct thread* thread, u64 now, u64 came, u64 queued) {
  record->head.type = kRecordWait;
  record->head.cpu = bpf_get_smp_processor_id();
  record->head.size = sizeof *record;
  record->head.time = now;
  record->tid = task->pid;
  record->tgid = task->tgid;
  record->out = thread->out;
  record->woken = thread->woken;
  record->came = came;
  record->queued = queued;
  record->arg = thread->arg;
  record->user_stack = thread->user_stack;
  record->kernel_stack = thread->kernel_stack;
  record->waker_tid = thread->waker_tid;
  record->waker_stack = thread->waker_stack;
  record->owner = thread->owner;
  record->syscall = thread->syscall;
  record->flags = thread->flags;
  if (counts_delays(task)) record->flags |= kWaitQueued;
}

// Writes the wait that ends now; for the kernel it ended at `came`.
static __always_inline void end_wait(struct task_struct* task, struct thread* thread, u64 now,
                                     u64 came, u64 queued) {
  void* ring = ring_here();
  struct wait_record* record = ring ? bpf_ringbuf_reserve(ring, sizeof(struct wait_record), 0) : 0;
  if (record) {
    fill_wait(record, task, thread, now, came, queued);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    count(kCountWaits);
  } else {
    count(kCountRingFull);
  }
  thread->out = 0;
  thread->woken = 0;
  thread->waker_tid = 0;
  thread->waker_stack = 0;
}

// The time at which a thread got a CPU when no record shows it: computed from the time it has run
// since.
static __always_inline u64 arrival(struct thread* thread, u64 ran, u64 now) {
  u64 came = now - (ran - thread->ran);
  return came > thread->out && came < now ? came : now;
}

// A thread leaves a CPU, and its switch-in was not seen: some kernels do not show every switch. The
// wait before it ends where the thread began to run; so does the wait that was open when the
// thread was first listed, unless it ran all the time.
static __always_inline void end_missed_wait(struct task_struct* task, struct thread* thread,
                                            u64 ran, u64 now) {
  if (thread->out) count(kCountMissedIn);
  end_wait(task, thread, now, arrival(thread, ran, now), delay_of(task) - thread->delayed);
}

static __always_inline void leave_cpu(void* ctx, struct task_struct* prev, struct thread* thread,
                                      bool preempted, u32 state, u64 now) {
  struct found_stack found = {};
  if (state & TASK_DEAD) return;
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(prev);
  if (!regs) return;
  u64 ran = prev->se.sum_exec_runtime;
  if (thread->out || !thread->seen) end_missed_wait(prev, thread, ran, now);
  long number = regs->orig_ax;
  bool in_syscall = number >= 0 && number < NO_SYSCALL;
  u32 kind = preempted                      ? kKeyPreempted
             : state & TASK_UNINTERRUPTIBLE ? kKeyUninterruptible
                                            : kKeyWait;
  u32 key = kind << 16 | (in_syscall ? (u32)number : NO_SYSCALL);
  thread->seen = 1;
  thread->out = scheduler_now(prev, now);
  thread->ran = ran;
  thread->delayed = delay_of(prev);
  thread->flags = preempted ? kWaitPreempted : 0;
  thread->syscall = in_syscall ? number : NO_SYSCALL;
  thread->arg = in_syscall ? regs->di : 0;
  thread->owner = 0;
  // Woken long before it left: that wake-up belongs to a sleep that did not happen.
  if (!preempted && thread->woken && now - thread->woken > 20000) thread->woken = 0;
  if (in_syscall && number == SYSCALL_FUTEX && !preempted)
    thread->owner = mutex_owner(regs, thread->arg);
  find_stack(ctx, prev, thread, regs, now, key, true, &found);
  thread->user_stack = found.user;
  thread->kernel_stack = found.kernel;
  if (found.once) thread->flags |= kWaitOnce;
}

static __always_inline void enter_cpu(struct task_struct* next, struct thread* thread, u64 now) {
  if (thread->seen && thread->out == 0) return;
  thread->seen = 1;
  end_wait(next, thread, now, scheduler_now(next, now), queued_since(next, thread));
}

SEC("tp_btf/sched_switch")
int on_switch(u64* ctx) {
  struct task_struct* prev = (struct task_struct*)ctx[1];
  struct task_struct* next = (struct task_struct*)ctx[2];
  struct thread* leaving = thread_of(prev);
  struct thread* coming = thread_of(next);
  u64 now = 0;
  if (leaving) {
    u32 state = has_prev_state ? (u32)ctx[3] : prev->__state;
    now = bpf_ktime_get_ns();
    count(kCountSwitches);
    leave_cpu(ctx, prev, leaving, (u8)ctx[0] || state == 0, state, now);
  }
  if (coming) enter_cpu(next, coming, now ? now : bpf_ktime_get_ns());
  return 0;
}

// Whether the current thread made the wake-up, and not an interrupt that hit it. Interrupts of
// kernel code have a stack of their own, and those of user code show no system call. Loopback
// traffic is delivered in a soft interrupt inside the sender's call.
static __always_inline bool is_own_act(struct walk* w, void* ctx, struct task_struct* task,
                                       long number) {
  if (number < 0) return false;
  // The verifier does not compute with context pointers, so the address goes through memory as a
  // plain number. Volatile: clang would otherwise use the register that still holds the pointer.
  *(volatile u64*)&w->pc = (u64)ctx;
  u64 here = *(volatile u64*)&w->pc;
  if (here - (u64)task->stack < KERNEL_STACK_BYTES) return true;
  return number == 1 || number == 3 || number == 18 || number == 20 || number == 40 ||
         number == 42 || number == 44 || number == 46 || number == 48 || number == 307;
}

SEC("tp_btf/sched_waking")
int on_waking(u64* ctx) {
  struct task_struct* woken = (struct task_struct*)ctx[0];
  struct task_struct* waker = bpf_get_current_task_btf();
  struct found_stack found = {};
  u32 zero = 0;
  if (!trace_wakeups || woken == waker) return 0;
  struct thread* thread = bpf_task_storage_get(&threads, woken, 0, 0);
  if (!thread || thread->woken) return 0;
  u64 now = bpf_ktime_get_ns();
  thread->woken = now;
  thread->waker_tid = 0;
  thread->waker_stack = 0;
  if (waker->flags & PF_KTHREAD) return 0;
  struct thread* from = bpf_task_storage_get(&threads, waker, 0, 0);
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(waker);
  struct walk* w = bpf_map_lookup_elem(&walks, &zero);
  if (!from || !regs || !w || !is_own_act(w, ctx, waker, regs->orig_ax)) return 0;
  thread->waker_tid = waker->pid;
  find_stack(ctx, waker, from, regs, now, kKeyWaker << 16, false, &found);
  thread->waker_stack = found.user;
  if (found.once) thread->flags |= kWakerOnce;
  return 0;
}

SEC("perf_event")
int on_sample(void* ctx) {
  u32 one = 1;
  u64 id = bpf_get_current_pid_tgid();
  u32 tgid = id >> 32;
  struct process* process = bpf_map_lookup_elem(&processes, &tgid);
  if (!process) return 0;
  struct walk* w = bpf_map_lookup_elem(&walks, &one);
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  void* ring = ring_here();
  if (!w || !regs || !ring) return 0;
  w->now = bpf_ktime_get_ns();
  w->tid = (u32)id;
  w->tgid = tgid;
  walk_stack(w, regs->ip, regs->sp, regs->bp, process->code);
  w->is_cacheable = 0;
  w->regs = (u64)regs;
  w->which = 1;
  w->replaces = 0;
  u32 user = emit_walk(w);
  u32 kernel = kernel_stack(ctx, w, 0, 0);
  struct sample_record* record = bpf_ringbuf_reserve(ring, sizeof(struct sample_record), 0);
  if (!record) {
    count(kCountRingFull);
    return 0;
  }
  record->head.type = kRecordSample;
  record->head.cpu = bpf_get_smp_processor_id();
  record->head.size = sizeof *record;
  record->head.time = w->now;
  record->tid = (u32)id;
  record->tgid = tgid;
  record->user_stack = user;
  record->kernel_stack = kernel;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  count(kCountSamples);
  return 0;
}

// A new thread or child belongs to the target before it runs for the first time; a child has its
// parent's mappings.
SEC("tp_btf/sched_process_fork")
int on_fork(u64* ctx) {
  struct task_struct* parent = (struct task_struct*)ctx[0];
  struct task_struct* child = (struct task_struct*)ctx[1];
  u32 from = parent->tgid, to = child->tgid;
  struct process* process = bpf_map_lookup_elem(&processes, &from);
  if (!process || (from != to && !follow_children)) return 0;
  if (from != to) {
    struct process born = {.code = process->code, .tgid = to};
    if (bpf_map_update_elem(&processes, &to, &born, BPF_ANY)) count(kCountNoMemory);
  }
  adopt(child);
  return 0;
}

// A new image: until its mappings are known, stacks are walked by the reader.
SEC("tp_btf/sched_process_exec")
int on_exec(u64* ctx) {
  struct task_struct* task = (struct task_struct*)ctx[0];
  u32 tgid = task->tgid;
  struct process* process = bpf_map_lookup_elem(&processes, &tgid);
  if (!process) return 0;
  process->code = 0;
  __sync_fetch_and_add(&generation, 1);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64* ctx) {
  struct task_struct* task = (struct task_struct*)ctx[0];
  struct thread* thread = bpf_task_storage_get(&threads, task, 0, 0);
  u32 tgid = task->tgid;
  if (thread && thread->out) {
    // Its last switch-in was not seen. Its CPU time since then is not counted yet, either: the
    // wake-up is the nearest moment that is known.
    u64 now = bpf_ktime_get_ns();
    u64 came = thread->woken > thread->out ? thread->woken : now;
    count(kCountMissedIn);
    end_wait(task, thread, now, came, 0);
  }
  if (thread && thread->has_cache == kHasCache) {
    thread->has_cache = kCacheRefused;  // it still runs for a moment
    __sync_fetch_and_sub(&cache_count, 1);
    bpf_task_storage_delete(&caches, task);
  }
  if (task->signal->live.counter == 0) bpf_map_delete_elem(&processes, &tgid);
  return 0;
}

// The open waits: for the end of a capture, and for a run that is cut off. Threads whose start was
// not seen get their state here.
SEC("iter/task")
int list_open_waits(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  struct wait_record record = {};
  if (!task) return 0;
  struct thread* thread = bpf_task_storage_get(&threads, task, 0, 0);
  u32 tgid = task->tgid;
  if (!thread) {
    if (bpf_map_lookup_elem(&processes, &tgid)) adopt(task);
    return 0;
  }
  u64 out = thread->out, ran = task->se.sum_exec_runtime;
  if (out == 0) return 0;
  bool is_over = ran - thread->ran > 1000;  // its switch-in was not seen and it is still running
  u64 end = is_over ? arrival(thread, ran, bpf_ktime_get_ns()) : out;
  fill_wait(&record, task, thread, end, end, delay_of(task) - thread->delayed);
  if (!is_over) record.flags |= kWaitOpen;
  bpf_seq_write(ctx->meta->seq, &record, sizeof record);
  return 0;
}

// The user registers of the target's threads, all of them exact for blocked threads: /proc shows
// only two registers of a blocked thread, which is not enough to walk its stack.
SEC("iter/task")
int list_registers(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  struct thread_registers record = {};
  if (!task) return 0;
  u32 tgid = task->tgid;
  if (!bpf_map_lookup_elem(&processes, &tgid)) return 0;
  void* regs = (void*)bpf_task_pt_regs(task);
  if (bpf_probe_read_kernel(&record.regs, sizeof record.regs, regs)) return 0;
  record.tid = task->pid;
  record.tgid = tgid;
  bpf_seq_write(ctx->meta->seq, &record, sizeof record);
  return 0;
}
