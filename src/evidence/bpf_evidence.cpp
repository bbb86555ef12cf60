#include "evidence/bpf_evidence.h"

#include <algorithm>
#include <cstring>

namespace assay::evidence {
namespace {

namespace bpf = capture::bpf;
using model::StackEnd;
using model::StackId;

// A stack may still be referred to by a wake-up under way when its thread has forgotten it.
constexpr TimeNs kRetireNs = 10 * kNsPerSecond;
constexpr size_t kMostToCompare = 4096;
constexpr size_t kFramesOfTracing = 10;  // at the leaf, before the scheduler's

template <class Record>
bool copy_head(std::span<const std::byte> bytes, size_t fixed_bytes, Record& out) {
  if (bytes.size() < fixed_bytes || bytes.size() > sizeof out) return false;
  std::memcpy(&out, bytes.data(), bytes.size());
  return true;
}

}  // namespace

model::UserRegisters registers_of(const bpf::raw_regs& r) {
  model::UserRegisters registers;
  const uint64_t values[model::kRegCount] = {r.ax,  r.dx,  r.cx,  r.bx,  r.si,  r.di,
                                             r.bp,  r.sp,  r.r8,  r.r9,  r.r10, r.r11,
                                             r.r12, r.r13, r.r14, r.r15, r.ip};
  for (int reg = 0; reg < model::kRegCount; ++reg) registers.set(reg, values[reg]);
  return registers;
}

BpfEvidence::BpfEvidence(const Parts& parts, TaskOf task_of, AddSample add_sample,
                         capture::OffCpu& off_cpu, TimeNs window_begin)
    : parts_(parts),
      task_of_(std::move(task_of)),
      add_sample_(std::move(add_sample)),
      off_cpu_(off_cpu),
      window_begin_(window_begin),
      lost_(parts.stacks.marker(StackEnd::lost)) {}

bool BpfEvidence::is_record(std::span<const std::byte> bytes) {
  uint32_t type = 0;
  if (bytes.size() < sizeof(bpf::head)) return false;
  std::memcpy(&type, bytes.data(), sizeof type);
  return type >= bpf::kRecordWait && type <= bpf::kRecordKernel;
}

bool BpfEvidence::handle(std::span<const std::byte> bytes, TimeNs window_end) {
  bpf::head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  retire_due(static_cast<TimeNs>(head.time));
  switch (head.type) {
    case bpf::kRecordStack:
      return handle_stack(bytes);
    case bpf::kRecordRaw:
      return handle_raw(bytes);
    case bpf::kRecordKernel:
      return handle_kernel(bytes);
    case bpf::kRecordWait: {
      bpf::wait_record record;
      if (bytes.size() != sizeof record) return false;
      std::memcpy(&record, bytes.data(), sizeof record);
      handle_wait(record, window_end);
      return true;
    }
    case bpf::kRecordSample: {
      bpf::sample_record record;
      if (bytes.size() != sizeof record) return false;
      std::memcpy(&record, bytes.data(), sizeof record);
      handle_sample(record, window_end);
      return true;
    }
    default:
      return false;
  }
}

bool BpfEvidence::handle_stack(std::span<const std::byte> bytes) {
  static thread_local bpf::stack_record record;
  constexpr size_t kFixed = offsetof(bpf::stack_record, pcs);
  if (!copy_head(bytes, kFixed, record)) return false;
  if (record.count > bpf::kMostFrames || bytes.size() < kFixed + record.count * sizeof(uint64_t))
    return false;
  ++stacks_;
  if (record.flags & bpf::kStackFramePointers) ++frame_pointer_stacks_;
  frames_.clear();
  for (size_t i = 0; i < record.count; ++i) {
    constexpr uint64_t kBit = uint64_t{1} << bpf::kNotAReturn;
    frames_.push_back({record.pcs[i] & ~kBit, (record.pcs[i] & kBit) == 0});
  }
  auto now = static_cast<TimeNs>(record.head.time);
  StackEnd end = record.end == bpf::kEndComplete ? StackEnd::complete : StackEnd::too_deep;
  users_[record.id] =
      parts_.stacks.build_from_addresses(static_cast<pid_t>(record.tgid), frames_, end, now);
  if (record.replaces != 0) retire(record.replaces, 0, now);
  if (parts_.programs.takes_truth() && to_compare_.size() < kMostToCompare)
    to_compare_[record.id] = frames_;
  return true;
}

bool BpfEvidence::handle_raw(std::span<const std::byte> bytes) {
  static thread_local bpf::raw_record record;
  constexpr size_t kFixed = offsetof(bpf::raw_record, copy);
  if (!copy_head(bytes, kFixed, record)) return false;
  if (record.copy_bytes > bytes.size() - kFixed) return false;
  unwind::RawStack raw;
  raw.pid = static_cast<pid_t>(record.tgid);
  raw.tid = static_cast<pid_t>(record.tid);
  raw.registers = registers_of(record.regs);
  raw.copy = std::as_bytes(std::span(record.copy, record.copy_bytes));
  if (record.flags & bpf::kStackTruth) {
    compare(raw.pid, record.id, raw);
    return true;
  }
  ++stacks_;
  ++raw_stacks_;
  users_[record.id] = parts_.stacks.build_user(raw, static_cast<TimeNs>(record.head.time));
  return true;
}

void BpfEvidence::compare(pid_t pid, uint32_t id, const unwind::RawStack& raw) {
  auto walked = to_compare_.extract(id);
  if (walked.empty()) return;
  const auto& theirs = walked.mapped();
  const unwind::UserStack& ours = parts_.unwinder.unwind(raw, parts_.spaces.of(pid));
  ++truth_.compared;
  auto same = [](const unwind::UserFrame& a, const unwind::UserFrame& b) {
    return a.pc == b.pc && a.is_return_address == b.is_return_address;
  };
  if (std::ranges::equal(theirs, ours.frames, same)) return;
  std::string cause = "other frames";
  if (ours.end == StackEnd::copy_too_short)
    cause = "the copy was too short";
  else if (ours.end != StackEnd::complete)
    cause = std::string(model::stack_end_text(ours.end));
  else if (ours.joined)
    cause = "joined from an earlier stack";
  ++truth_.differences[cause];
  if (cause != "other frames" || !truth_.first_difference.empty()) return;
  truth_.first_difference = "kernel:";
  for (const auto& frame : theirs) truth_.first_difference += fmt::format(" {:x}", frame.pc);
  truth_.first_difference += "\nreader:";
  for (const auto& frame : ours.frames) truth_.first_difference += fmt::format(" {:x}", frame.pc);
}

// The scheduler's own frame begins the stack of a wait; what lies before it is the tracing.
size_t BpfEvidence::scheduler_frame(std::span<const uint64_t> chain) {
  size_t last = std::min(chain.size(), kFramesOfTracing);
  for (size_t i = 0; i < last; ++i) {
    auto [it, added] = is_schedule_.try_emplace(chain[i], false);
    if (added) {
      auto names = parts_.symbolizer.resolve(parts_.spaces.kernel(), chain[i] - 1);
      it->second = !names.empty() && names.back().function == "__schedule";
    }
    if (it->second) return i;
  }
  return 0;
}

bool BpfEvidence::handle_kernel(std::span<const std::byte> bytes) {
  bpf::kernel_record record;
  constexpr size_t kFixed = offsetof(bpf::kernel_record, pcs);
  if (!copy_head(bytes, kFixed, record)) return false;
  if (record.count > bpf::kKernelFrames || bytes.size() < kFixed + record.count * sizeof(uint64_t))
    return false;
  std::vector<uint64_t> chain(record.pcs, record.pcs + record.count);
  chain.erase(chain.begin(), chain.begin() + static_cast<ptrdiff_t>(scheduler_frame(chain)));
  kernels_[record.id] = {std::move(chain), {}};
  if (record.replaces != 0) retire(0, record.replaces, static_cast<TimeNs>(record.head.time));
  return true;
}

StackId BpfEvidence::user_stack(uint32_t id) const {
  auto it = users_.find(id);
  return it == users_.end() ? lost_ : it->second;
}

StackId BpfEvidence::whole_stack(uint32_t user, uint32_t kernel) {
  StackId stack = user_stack(user);
  auto it = kernels_.find(kernel);
  if (it == kernels_.end()) return stack;
  auto [known, added] = it->second.on_top_of.try_emplace(stack);
  if (added) known->second = parts_.stacks.push_kernel(stack, it->second.chain);
  return known->second;
}

void BpfEvidence::retire(uint32_t user, uint32_t kernel, TimeNs now) {
  retired_.push_back({now, user, kernel});
}

void BpfEvidence::retire_due(TimeNs now) {
  for (; !retired_.empty() && now - retired_.front().time > kRetireNs; retired_.pop_front()) {
    users_.erase(retired_.front().user);
    kernels_.erase(retired_.front().kernel);
  }
}

model::ThreadId BpfEvidence::thread_in(pid_t pid, pid_t tid) const {
  std::optional<Task> task = tid > 0 ? parts_.tasks.find(tid) : std::nullopt;
  bool fits = task && (pid == 0 || task->pid == pid);
  return fits ? task->thread : model::Wait::kNoWaker;
}

capture::WaitSite BpfEvidence::site_of(const bpf::wait_record& record) {
  auto pid = static_cast<pid_t>(record.tgid);
  StackId stack = whole_stack(record.user_stack, record.kernel_stack);
  auto site =
      parts_.sites.site(pid, record.syscall, record.arg, stack, static_cast<TimeNs>(record.out));
  if (record.owner != 0 && record.owner != record.tid)
    site.owner = thread_in(pid, static_cast<pid_t>(record.owner));
  return site;
}

void BpfEvidence::handle_wait(const bpf::wait_record& record, TimeNs window_end) {
  auto time = static_cast<TimeNs>(record.came), out = static_cast<TimeNs>(record.out);
  capture::RecordHead head{time, static_cast<pid_t>(record.tgid), static_cast<pid_t>(record.tid),
                           record.head.cpu};
  if (time < window_begin_ || out > window_end) return;
  std::optional<Task> task = task_of_(head);
  if (!task) return;
  model::ThreadId thread = task->thread;
  if (out >= window_begin_) {
    off_cpu_.stack_at_switch(thread, out, site_of(record));
    off_cpu_.switched_out(thread, out, record.flags & bpf::kWaitPreempted);
  } else if (out > 0) {
    off_cpu_.snapshot(thread, site_of(record));
  }
  if (record.woken != 0 && static_cast<TimeNs>(record.woken) <= window_end) {
    StackId waker_stack;
    if (record.waker_stack != 0) waker_stack = user_stack(record.waker_stack);
    off_cpu_.woken(thread, static_cast<TimeNs>(record.woken),
                   thread_in(0, static_cast<pid_t>(record.waker_tid)), waker_stack);
  }
  bool is_over = (record.flags & bpf::kWaitOpen) == 0 && time <= window_end;
  std::optional<int64_t> queued;
  if (record.flags & bpf::kWaitQueued) queued = static_cast<int64_t>(record.queued);
  if (is_over) off_cpu_.switched_in(thread, time, queued);
  if (record.flags & bpf::kWaitOnce) retire(record.user_stack, record.kernel_stack, time);
  if (record.flags & bpf::kWakerOnce) retire(record.waker_stack, 0, time);
}

void BpfEvidence::handle_sample(const bpf::sample_record& record, TimeNs window_end) {
  auto time = static_cast<TimeNs>(record.head.time);
  capture::RecordHead head{time, static_cast<pid_t>(record.tgid), static_cast<pid_t>(record.tid),
                           record.head.cpu};
  bool in_window = time >= window_begin_ && time <= window_end;
  std::optional<Task> task = in_window ? task_of_(head) : std::nullopt;
  if (task) {
    off_cpu_.running_sample(task->thread, time);
    add_sample_(time, task->thread, whole_stack(record.user_stack, record.kernel_stack),
                record.head.cpu);
  }
  users_.erase(record.user_stack);
  kernels_.erase(record.kernel_stack);
}

void BpfEvidence::take_open_waits(TimeNs window_end) {
  for (bpf::wait_record record : parts_.programs.open_waits()) {
    if (record.flags & bpf::kWaitOpen) record.came = static_cast<uint64_t>(window_end);
    handle_wait(record, window_end);
  }
}

void BpfEvidence::for_each_open_wait(TimeNs now,
                                     const std::function<void(const model::Wait&)>& visit) {
  for (const bpf::wait_record& record : parts_.programs.open_waits()) {
    auto out = std::max(static_cast<TimeNs>(record.out), window_begin_);
    model::ThreadId thread =
        thread_in(static_cast<pid_t>(record.tgid), static_cast<pid_t>(record.tid));
    bool is_open = record.flags & bpf::kWaitOpen;
    if (!is_open || out >= now || thread == model::Wait::kNoWaker) continue;
    capture::WaitSite site = site_of(record);
    model::Wait wait;
    wait.start = out;
    wait.duration_ns = now - out;
    wait.thread = thread;
    wait.stack = site.stack;
    wait.set(model::WaitFlag::open_end);
    if (record.flags & bpf::kWaitPreempted) {
      wait.set(model::WaitFlag::preempted);
      wait.runqueue_ns = wait.duration_ns;
    } else {
      wait.syscall = site.syscall;
      wait.arg = site.arg;
      wait.fd_kind = site.fd_kind;
      wait.owner = site.owner;
    }
    visit(wait);
  }
}

}  // namespace assay::evidence
