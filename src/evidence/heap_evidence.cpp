#include "evidence/heap_evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::evidence {
namespace {

constexpr size_t kMostFrames = 192;  // as many as a sampler takes
constexpr model::ThreadId kUnknownThread{0xffffffff};
constexpr double kMostHotBytes = 0x1p40;  // of one allocation; millions of them can be added up

// A target can tell of sizes whose sum is no int64_t.
int64_t whole(double value) {
  if (!(value > 0)) return 0;
  return value < 0x1p63 ? static_cast<int64_t>(std::round(value))
                        : std::numeric_limits<int64_t>::max();
}

}  // namespace

HeapEvidence::Process& HeapEvidence::process(pid_t pid) {
  Process& process = processes_[pid];
  if (!process.looked) {
    process.looked = true;
    auto status = parts_.proc.status(pid);
    process.own_pids = status && status->namespace_tids.size() > 1;
  }
  return process;
}

// A container's threads have numbers of their own; the kernel tells both.
pid_t HeapEvidence::outer_tid(pid_t pid, Process& process, uint32_t tid) {
  if (!process.own_pids) return static_cast<pid_t>(tid);
  auto known = process.outer_tids.find(tid);
  if (known != process.outer_tids.end()) return known->second;
  for (pid_t outer : parts_.proc.tids(pid)) {
    auto status = parts_.proc.thread_status(pid, outer);
    if (!status || status->namespace_tids.empty()) continue;
    process.outer_tids[static_cast<uint32_t>(status->namespace_tids.back())] = outer;
  }
  // A thread that has ended meanwhile is taken for the first one.
  return process.outer_tids.try_emplace(tid, pid).first->second;
}

void HeapEvidence::add(pid_t pid, const capture::HeapRecord& record) {
  Process& of = process(pid);
  if (record.is_free) {
    add_free(pid, of, record);
  } else {
    add_alloc(pid, of, record);
  }
}

void HeapEvidence::add_alloc(pid_t pid, Process& process, const capture::HeapRecord& record) {
  pid_t tid = outer_tid(pid, process, record.tid);
  std::optional<Task> task = parts_.tasks.find_or_adopt(pid, tid, record.time);
  if (!task) task = parts_.tasks.find(pid);
  if (!task) return;
  // Given out again: its end was lost.
  end(process, record.address, record.time, task->thread);

  frames_.clear();
  for (uint64_t pc : record.pcs) frames_.push_back({pc, true});
  model::StackEnd stack_end = record.complete                    ? model::StackEnd::complete
                              : record.pcs.size() >= kMostFrames ? model::StackEnd::too_deep
                                                                 : model::StackEnd::no_unwind_info;
  model::HeapAlloc alloc;
  alloc.time = record.time;
  alloc.thread = task->thread;
  alloc.stack = parts_.stacks.build_from_addresses(pid, frames_, stack_end, record.time);
  alloc.id = next_id_++;
  alloc.size_bytes = record.size_bytes;
  alloc.rate_bytes = record.rate_bytes;
  alloc.function = record.function;
  parts_.sink.add_heap_alloc(alloc);

  double objects = alloc.weight(), bytes = objects * static_cast<double>(alloc.size_bytes);
  process.live[record.address] = {alloc.id, alloc.thread, bytes, objects};
  process.bytes += bytes;
  process.objects += objects;
  // Source is kept around call sites by the bytes that went through them: 1 KiB counts as 1 us.
  parts_.hot_source.add_running(alloc.stack, whole(std::min(bytes, kMostHotBytes)));
  counts_.allocations.fetch_add(1, std::memory_order_relaxed);
  add_live(bytes);
}

void HeapEvidence::add_free(pid_t pid, Process& process, const capture::HeapRecord& record) {
  pid_t tid = outer_tid(pid, process, record.tid);
  std::optional<Task> task = parts_.tasks.find_or_adopt(pid, tid, record.time);
  end(process, record.address, record.time, task ? task->thread : kUnknownThread);
}

void HeapEvidence::end(Process& process, uint64_t address, TimeNs time, model::ThreadId thread) {
  auto found = process.live.find(address);
  if (found == process.live.end()) return;
  const Live& live = found->second;
  parts_.sink.add_heap_free({time, thread == kUnknownThread ? live.thread : thread, live.id});
  process.bytes -= live.bytes;
  process.objects -= live.objects;
  counts_.frees.fetch_add(1, std::memory_order_relaxed);
  add_live(-live.bytes);
  process.live.erase(found);
}

void HeapEvidence::add_live(double bytes) {
  live_bytes_ += bytes;
  counts_.live_bytes.store(whole(live_bytes_), std::memory_order_relaxed);
}

void HeapEvidence::take_snapshots(TimeNs now) {
  for (const auto& [pid, process] : processes_) {
    std::optional<model::ProcessId> id = parts_.tasks.process(pid);
    if (!id) continue;
    parts_.sink.add_heap_snapshot({*id, now, whole(process.bytes), whole(process.objects),
                                   static_cast<int64_t>(process.live.size())});
  }
}

}  // namespace assay::evidence
