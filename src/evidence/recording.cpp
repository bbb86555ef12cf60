#include "evidence/recording.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "os/process/thread_snapshot.h"

namespace assay::evidence {
namespace {

using capture::EventKind;
using model::LossKind;
using model::ThreadId;

// Enough for the stacks of blocked threads; reading is a memcpy from the target's pages.
constexpr size_t kSnapshotStackBytes = 16 * 1024;

model::StackEnd missing_stack(const RecordedEvents& events) {
  return events.has_off_cpu_stacks() ? model::StackEnd::lost : model::StackEnd::not_sampled;
}

}  // namespace

Recording::Recording(const Parts& parts, TimeNs window_begin)
    : parts_(parts),
      window_begin_(window_begin),
      off_cpu_(window_begin, parts.stacks.marker(missing_stack(parts.events)),
               [this](const model::Wait& wait) {
                 counts_.waits.fetch_add(1, std::memory_order_relaxed);
                 parts_.sink.add_wait(wait);
                 parts_.hot_source.add_waiting(wait.stack, wait.duration_ns);
               }) {
  if (parts.bpf == nullptr) return;
  bpf_ = std::make_unique<BpfEvidence>(
      BpfEvidence::Parts{*parts.bpf, parts.spaces, parts.unwinder, parts.stacks, parts.sites,
                         parts.tasks, *parts.symbolizer},
      [this](const capture::RecordHead& head) { return task_of(head); },
      [this](TimeNs time, ThreadId thread, model::StackId stack, uint16_t cpu) {
        counts_.samples.fetch_add(1, std::memory_order_relaxed);
        parts_.sink.add_sample({time, thread, stack, parts_.events.sample_period_ns(), cpu});
        parts_.hot_source.add_running(stack, parts_.events.sample_period_ns());
      },
      off_cpu_, window_begin);
}

void Recording::add_existing_threads() {
  for (pid_t tid : parts_.tasks.tids()) {
    const Task task = *parts_.tasks.find(tid);
    auto stat = parts_.proc.thread_stat(task.pid, tid);
    off_cpu_.existing_thread(task.thread, window_begin_, stat && stat->state == 'R');
    StartState& start = at_start_[task.thread];
    start.pid = task.pid;
    start.tid = tid;
    auto sched = parts_.proc.thread_schedstat(task.pid, tid);
    if (sched) start.run_ns = sched->run_ns;
    unseen_.push_back(tid);
  }
}

void Recording::take_first_snapshots(int64_t slice_ns) {
  if (unseen_.empty()) return;
  if (registers_.empty()) read_registers();
  TimeNs deadline = monotonic_ns() + slice_ns;
  while (!unseen_.empty() && monotonic_ns() < deadline) {
    pid_t tid = unseen_.front();
    unseen_.pop_front();
    std::optional<Task> task = parts_.tasks.find(tid);
    if (task) take_snapshot(task->thread, task->pid, tid);
  }
  if (unseen_.empty()) registers_.clear();
}

void Recording::read_registers() {
  if (parts_.bpf == nullptr) return;
  for (const capture::bpf::thread_registers& thread : parts_.bpf->thread_registers())
    registers_[static_cast<pid_t>(thread.tid)] = thread.regs;
}

// All of a blocked thread's registers where they are known of the very call that it is in; else the
// two that /proc tells, by which code with frame pointers cannot be walked.
model::UserRegisters Recording::registers_at(const os::ThreadSnapshot& snapshot, pid_t tid) const {
  const os::SyscallState& call = snapshot.syscall;
  auto known = registers_.find(tid);
  if (known != registers_.end()) {
    const capture::bpf::raw_regs& r = known->second;
    const uint64_t arguments[] = {r.di, r.si, r.dx, r.r10, r.r8, r.r9};
    bool same_call = call.number < 0 || (r.orig_ax == static_cast<uint64_t>(call.number) &&
                                         std::ranges::equal(arguments, call.args));
    if (r.ip == call.ip && r.sp == call.sp && same_call) return registers_of(r);
  }
  model::UserRegisters registers;
  registers.set(model::kRegRip, call.ip);
  registers.set(model::kRegRsp, call.sp);
  return registers;
}

void Recording::take_snapshot(ThreadId thread, pid_t pid, pid_t tid) {
  auto snapshot = os::snapshot_blocked_thread(parts_.proc, pid, tid, kSnapshotStackBytes);
  if (!snapshot) return;
  unwind::RawStack raw;
  raw.pid = pid;
  raw.tid = tid;
  raw.registers = registers_at(*snapshot, tid);
  raw.copy = snapshot->stack;
  model::StackId stack = parts_.stacks.build_user(raw, snapshot->time);
  snapshots_.push_back({snapshot->time, thread, parts_.sites.site(pid, *snapshot, stack)});
}

void Recording::apply_snapshots(TimeNs until) {
  for (; !snapshots_.empty() && snapshots_.front().time <= until; snapshots_.pop_front()) {
    off_cpu_.snapshot(snapshots_.front().thread, snapshots_.front().site);
  }
}

void Recording::snapshot_blocked_threads() {
  for (pid_t tid : parts_.tasks.tids()) {
    const Task task = *parts_.tasks.find(tid);
    take_snapshot(task.thread, task.pid, tid);
  }
}

void Recording::consume(capture::Batch batch) {
  count_losses(batch);
  uint64_t late_before = records_.late();
  TimeNs now = batch.drained_at;
  records_.add(std::move(batch), [this](std::span<const std::byte> bytes) { handle(bytes); });
  if (records_.late() > late_before)
    add_loss(LossKind::out_of_order, -1, now, records_.late() - late_before);
}

void Recording::finish(TimeNs window_end) {
  window_end_ = window_end;
  records_.flush([this](std::span<const std::byte> bytes) { handle(bytes); });
  apply_snapshots(INT64_MAX);
  if (bpf_) bpf_->take_open_waits(window_end);
  off_cpu_.finish(window_end, [this](ThreadId thread) { return ran_throughout(thread); });
  // A ring tells of a loss with its next record; after the last one only the kernel's count does.
  uint64_t lost = parts_.events.lost_records();
  if (lost > told_losses_) add_loss(LossKind::ring_records, -1, window_end, lost - told_losses_);
}

std::vector<model::Wait> Recording::open_waits() {
  std::vector<model::Wait> open;
  std::unordered_set<ThreadId> seen;
  TimeNs now = records_.released_until();
  if (bpf_) {
    bpf_->for_each_open_wait(now, [&](const model::Wait& wait) {
      open.push_back(wait);
      seen.insert(wait.thread);
    });
  }
  off_cpu_.for_each_open_wait(now, [&](const model::Wait& wait) {
    if (!seen.contains(wait.thread)) open.push_back(wait);
  });
  return open;
}

void Recording::resynchronise(TimeNs now) {
  parts_.tasks.resync(now);
}

std::optional<Task> Recording::task_of(const capture::RecordHead& head) {
  std::optional<Task> task = parts_.tasks.find_or_adopt(head.pid, head.tid, head.time);
  if (task && !off_cpu_.knows(task->thread)) off_cpu_.existing_thread(task->thread, head.time);
  return task;
}

// A thread without a record either slept through the window or never left its CPU; how long it ran
// tells which.
bool Recording::ran_throughout(ThreadId thread) const {
  auto it = at_start_.find(thread);
  if (it == at_start_.end()) return false;
  auto sched = parts_.proc.thread_schedstat(it->second.pid, it->second.tid);
  return sched && sched->run_ns - it->second.run_ns > (window_end_ - window_begin_) / 2;
}

void Recording::count_losses(const capture::Batch& batch) {
  for (const auto& loss : batch.ring_losses) {
    LossKind kind = loss.side_band ? LossKind::side_band_records : LossKind::ring_records;
    add_loss(kind, loss.cpu, batch.drained_at, loss.records);
    told_losses_ += loss.records;
  }
  if (batch.dropped_samples > 0)
    add_loss(LossKind::dropped_samples, -1, batch.drained_at, batch.dropped_samples);
  if (batch.cut_stacks > 0)
    add_loss(LossKind::dropped_stacks, -1, batch.drained_at, batch.cut_stacks);
  if (batch.malformed > 0) add_loss(LossKind::malformed, -1, batch.drained_at, batch.malformed);
  if (batch.throttled > 0) add_loss(LossKind::throttled, -1, batch.drained_at, batch.throttled);
}

void Recording::add_uncovered(int cpu, TimeNs time, uint64_t samples) {
  add_loss(LossKind::ring_records, cpu, time, samples);
}

void Recording::add_loss(LossKind kind, int cpu, TimeNs time, uint64_t count) {
  parts_.sink.add_loss({kind, cpu, time, count});
  if (kind != LossKind::out_of_order) counts_.lost.fetch_add(count, std::memory_order_relaxed);
}

void Recording::handle(std::span<const std::byte> bytes) {
  if (bpf_ && BpfEvidence::is_record(bytes)) {
    capture::bpf::head head;
    std::memcpy(&head, bytes.data(), sizeof head);
    apply_snapshots(static_cast<TimeNs>(head.time));
    if (!bpf_->handle(bytes, window_end_)) add_loss(LossKind::malformed, -1, 0, 1);
    return;
  }
  auto record = capture::parse_record(bytes, parts_.events);
  if (!record) {
    add_loss(LossKind::malformed, -1, 0, 1);
    return;
  }
  const capture::RecordHead& head = record->head;
  apply_snapshots(head.time);
  if (auto* sample = std::get_if<capture::SampleRecord>(&record->body)) {
    handle_sample(head, *sample);
  } else if (auto* change = std::get_if<capture::SwitchRecord>(&record->body)) {
    handle_switch(head, *change);
  } else if (auto* mmap = std::get_if<capture::MmapRecord>(&record->body)) {
    if (parts_.tasks.contains(head.pid)) parts_.spaces.mapped(head.pid, *mmap);
  } else if (auto* comm = std::get_if<capture::CommRecord>(&record->body)) {
    handle_comm(head, *comm);
  } else if (auto* fork = std::get_if<capture::ForkRecord>(&record->body)) {
    handle_fork(head, *fork);
  } else if (auto* exit = std::get_if<capture::ExitRecord>(&record->body)) {
    handle_exit(head, *exit);
  }
}

void Recording::handle_sample(const capture::RecordHead& head, capture::SampleRecord& sample) {
  bool is_switch = sample.kind == EventKind::off_cpu || sample.kind == EventKind::off_cpu_bare;
  if (is_switch && is_repeated(head)) return;
  if (!in_window(head.time)) return;
  if (sample.kind == EventKind::waking) {
    std::optional<Task> woken = parts_.tasks.find(parts_.events.woken_tid(sample.raw));
    if (!woken) return;
    std::optional<Task> waker = parts_.tasks.find(head.tid);
    off_cpu_.woken(woken->thread, head.time, waker ? waker->thread : model::Wait::kNoWaker);
    return;
  }
  if (is_switch) {
    handle_off_cpu(head, sample);
  } else if (sample.kind == EventKind::on_cpu) {
    handle_on_cpu(head, sample);
  }
}

void Recording::handle_on_cpu(const capture::RecordHead& head, capture::SampleRecord& sample) {
  std::optional<Task> task = task_of(head);
  if (!task) return;
  off_cpu_.running_sample(task->thread, head.time);
  counts_.samples.fetch_add(1, std::memory_order_relaxed);
  model::StackId stack = parts_.stacks.build(head.pid, head.tid, sample, head.time);
  parts_.sink.add_sample({head.time, task->thread, stack, parts_.events.sample_period_ns(),
                          static_cast<uint16_t>(head.cpu)});
  parts_.hot_source.add_running(stack, parts_.events.sample_period_ns());
}

void Recording::handle_off_cpu(const capture::RecordHead& head, capture::SampleRecord& sample) {
  auto change = parts_.events.switch_of(sample.raw);
  if (std::optional<Task> task = task_of(head)) {
    bool has_stack = sample.registers.known != 0 || !sample.kernel_chain.empty();
    if (has_stack) {
      model::StackId stack = parts_.stacks.build(head.pid, head.tid, sample, head.time);
      off_cpu_.stack_at_switch(task->thread, head.time,
                               parts_.sites.site(head.pid, sample, stack, head.time));
    }
    if (change) off_cpu_.switched_out(task->thread, head.time, change->preempted);
  }
  if (!change) return;  // SWITCH records tell the rest
  std::optional<Task> next = parts_.tasks.find(change->to);
  if (!next) return;
  // A CPU that was idle was not lacking, nor was one that the wake-up took from another thread at
  // once: the time since the wake-up is the wake-up's own. The kernel counts it so, too.
  constexpr int64_t kAtOnceNs = 100 * kNsPerUs;
  bool at_once = change->preempted && off_cpu_.since_wakeup(next->thread, head.time) < kAtOnceNs;
  std::optional<int64_t> queued;
  if (head.tid == 0 || at_once) queued = 0;
  off_cpu_.switched_in(next->thread, head.time, queued);
}

void Recording::handle_switch(const capture::RecordHead& head,
                              const capture::SwitchRecord& record) {
  if (!in_window(head.time)) return;
  std::optional<Task> task = task_of(head);
  if (!task) return;
  if (record.out) {
    off_cpu_.switched_out(task->thread, switch_time(head), record.preempted);
  } else {
    off_cpu_.switched_in(task->thread, switch_time(head));
  }
}

// While one event takes over from the other, both record a switch. Two real ones of the same thread
// on the same CPU are further apart.
bool Recording::is_repeated(const capture::RecordHead& head) {
  constexpr TimeNs kTooSoon = 2 * kNsPerUs;
  if (head.cpu >= switch_began_.size()) switch_began_.resize(head.cpu + 1);
  SwitchBegin& last = switch_began_[head.cpu];
  bool repeated = last.tid == head.tid && head.time - last.time < kTooSoon && last.time != 0;
  last = {head.time, head.tid};
  if (!repeated) ++switches_;
  return repeated;
}

// One moment for both sides of a switch, so that the time it takes is neither lost nor counted
// twice.
TimeNs Recording::switch_time(const capture::RecordHead& head) const {
  constexpr TimeNs kLongestSwitch = 200 * kNsPerUs;
  if (!parts_.events.sees_whole_cpus() || head.cpu >= switch_began_.size()) return head.time;
  TimeNs began = std::max(switch_began_[head.cpu].time, window_begin_);
  return began <= head.time && head.time - began < kLongestSwitch ? began : head.time;
}

void Recording::handle_fork(const capture::RecordHead& head, const capture::ForkRecord& fork) {
  std::optional<Task> known = parts_.tasks.find(fork.tid);
  bool was_listed = known && known->pid == fork.pid && at_start_.contains(known->thread);
  parts_.tasks.on_fork(fork.parent_pid, fork.parent_tid, fork.pid, fork.tid, head.time);
  std::optional<Task> born = parts_.tasks.find(fork.tid);
  if (!born || born->pid != fork.pid) return;
  // A thread born while the target was being listed is in the list and has a record, too.
  if (!was_listed) parts_.spaces.forked(fork.parent_pid, fork.pid);
  off_cpu_.born(born->thread, head.time);
}

void Recording::handle_exit(const capture::RecordHead& head, const capture::ExitRecord& exit) {
  std::optional<Task> task = parts_.tasks.find(exit.tid);
  if (!task || task->pid != exit.pid) return;
  off_cpu_.exited(task->thread, head.time);
  at_start_.erase(task->thread);
  parts_.unwinder.forget_thread(exit.tid);
  parts_.tasks.on_exit(exit.pid, exit.tid, head.time);
  if (!parts_.tasks.contains(exit.pid)) {
    parts_.spaces.exited(exit.pid);
    parts_.sites.forget(exit.pid);
    parts_.data_names.forget(exit.pid);
  }
}

void Recording::handle_comm(const capture::RecordHead& head, const capture::CommRecord& comm) {
  if (!parts_.tasks.contains(head.pid)) return;
  if (!comm.exec) {
    parts_.tasks.on_comm(head.tid, comm.name);
    return;
  }
  std::optional<Task> before = parts_.tasks.find(head.tid);
  model::ThreadId old_thread = before ? before->thread : model::Wait::kNoWaker;
  parts_.tasks.on_exec(head.pid, comm.name, head.time);
  std::optional<Task> after = parts_.tasks.find(head.pid);  // the one that is left leads
  if (after && after->thread != old_thread) {
    off_cpu_.exited(old_thread, head.time);
    off_cpu_.began_running(after->thread, head.time);
  }
  parts_.spaces.executed(head.pid);
  parts_.sites.forget(head.pid);
  parts_.data_names.forget(head.pid);
}

}  // namespace assay::evidence
