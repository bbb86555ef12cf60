#include "inject/inproc/cpu/thread_stacks.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/stack_walk.h"
#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/locks/futex_lock.h"
#include "inject/inproc/lifecycle/label_table.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/write/profile.h"
#include "inject/inproc/cpu/profiling_signal.h"
#include "inject/inproc/write/pseudo_frame.h"
#include "inject/inproc/cpu/sleeping_thread.h"

namespace assay::inproc {
namespace {

constexpr size_t kMaxThreads = 4096;
constexpr uint32_t kMaxFrames = 192;
constexpr int64_t kTimeoutNs = 500'000'000;

enum State : uint32_t { kWaiting = 1, kWriting, kDone, kGivenUp };

// A thread's answer. `ticket` is the collection and the state in one word, so that a signal that
// arrives after its collection has ended sees a changed word and writes nothing.
struct Answer {
  std::atomic<uint64_t> ticket;
  uint32_t label, frames;
  uintptr_t pcs[kMaxFrames];
};

FutexLock collect_lock;
Answer* answers = nullptr;
std::atomic<uint32_t> collection;

uint64_t ticket(uint32_t number, State state) {
  return uint64_t{number} << 8 | state;
}

struct TidList {
  int* tids;
  size_t count;
};

// Reads /proc/self/task/TID/status: name, state, whether `signal` is blocked.
bool read_status(ThreadStack& thread, int signal, bool& blocked) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", thread.tid);
  ByteBuffer text;
  if (!read_whole_file(path, text)) return false;
  text.append("", 1);
  const char* name = std::strstr(text.data(), "Name:\t");
  const char* state = std::strstr(text.data(), "\nState:\t");
  if (name == nullptr || state == nullptr) return false;
  sscanf(name + 6, "%15[^\n]", thread.name);
  thread.state = state[8];
  blocked = status_blocks(text.data(), signal);
  return true;
}

// The stack of a thread that sleeps, or one frame that says why there is none.
void look_from_outside(const SleepingThread* sleeping, PseudoFrame otherwise, Arena& arena,
                       ThreadStack& thread) {
  if (sleeping != nullptr) thread.frames = walk_sleeping_thread(*sleeping, arena, thread.pcs);
  if (thread.frames > 0) return;
  auto* pcs = arena.array<uintptr_t>(1);
  if (pcs == nullptr) return;
  pcs[0] = otherwise;
  thread.pcs = pcs;
  thread.frames = 1;
}

// Which answer of which collection.
struct Question {
  uint32_t number, slot;
};

bool ask(int tid, int signal, const Question& question) {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr =
      reinterpret_cast<void*>(uint64_t{question.number} << 32 | question.slot);
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, signal, &info) == 0;
}

// Signals a thread if that is allowed; reads others from outside.
void begin_one(ThreadStack& thread, bool blocks, int signal, const Question& question,
               Arena& arena) {
  SleepingThread sleeping;
  bool sleeps = find_sleeping_thread(thread.tid, sleeping);
  if (blocks)
    thread.unasked = "blocks the signal";
  else if (sleeps && sleeping.is_ended_by_signals())
    thread.unasked = "waits in a call that a signal would end";
  else if (!ask(thread.tid, signal, question))
    thread.unasked = "could not be asked";
  if (thread.unasked == nullptr) return;
  look_from_outside(sleeps ? &sleeping : nullptr, blocks ? kRunsUnasked : kCouldNotBeAsked, arena,
                    thread);
}

void wait_for(Answer& answer, uint32_t number, int64_t deadline_ns) {
  timespec pause{0, 200'000};
  while (answer.ticket.load() != ticket(number, kDone) && monotonic_ns() < deadline_ns)
    nanosleep(&pause, nullptr);
  uint64_t waiting = ticket(number, kWaiting);
  if (answer.ticket.compare_exchange_strong(waiting, ticket(number, kGivenUp))) return;
  // It has begun to write: that ends soon, unless the thread is stopped in the middle.
  for (int i = 0; i < 500 && answer.ticket.load() == ticket(number, kWriting); ++i)
    nanosleep(&pause, nullptr);
}

void take_answer(const Answer& answer, uint32_t number, Arena& arena, ThreadStack& thread) {
  if (answer.ticket.load(std::memory_order_acquire) != ticket(number, kDone)) {
    thread.unasked = "did not answer in time";
    SleepingThread sleeping;
    bool sleeps = find_sleeping_thread(thread.tid, sleeping);
    return look_from_outside(sleeps ? &sleeping : nullptr, kDidNotAnswer, arena, thread);
  }
  auto* pcs = arena.array<uintptr_t>(answer.frames + 1);
  if (pcs == nullptr) return;
  std::memcpy(pcs, answer.pcs, answer.frames * sizeof(uintptr_t));
  thread.pcs = pcs;
  thread.frames = answer.frames;
  thread.label = answer.label;
}

}  // namespace

void on_stack_request(const siginfo_t& info, const void* context) {
  auto value = reinterpret_cast<uint64_t>(info.si_value.sival_ptr);
  uint32_t slot = value & 0xffffffff, number = value >> 32;
  if (info.si_pid != getpid() || answers == nullptr || slot >= kMaxThreads) return;
  Answer& answer = answers[slot];
  uint64_t waiting = ticket(number, kWaiting);
  if (!answer.ticket.compare_exchange_strong(waiting, ticket(number, kWriting))) return;
  answer.frames = inject::walk_interrupted(context, answer.pcs, kMaxFrames).frames;
  answer.label = current_label();
  answer.ticket.store(ticket(number, kDone), std::memory_order_release);
}

bool collect_thread_stacks(Arena& arena, ThreadStack*& stacks, size_t& count) {
  Hold hold(collect_lock);
  inject::prepare_stack_walk();
  if (answers == nullptr) answers = static_cast<Answer*>(map_pages(kMaxThreads * sizeof(Answer)));
  TidList list{arena.array<int>(kMaxThreads), 0};
  int signal = take_profiling_signal(0);
  if (answers == nullptr || list.tids == nullptr || signal == 0) return false;
  for_each_thread(
      [](int tid, void* given) {
        auto* tids = static_cast<TidList*>(given);
        if (!is_own_thread(tid) && tids->count < kMaxThreads) tids->tids[tids->count++] = tid;
      },
      &list);
  stacks = arena.array<ThreadStack>(list.count + 1);
  if (stacks == nullptr) return false;
  uint32_t number = collection.fetch_add(1) + 1;
  count = 0;
  for (size_t i = 0; i < list.count; ++i) {
    ThreadStack thread;
    thread.tid = list.tids[i];
    bool blocked = false;
    if (!read_status(thread, signal, blocked)) continue;  // it has ended
    answers[count].ticket.store(ticket(number, kWaiting));
    begin_one(thread, blocked, signal, {number, static_cast<uint32_t>(count)}, arena);
    stacks[count++] = thread;
  }
  int64_t deadline_ns = monotonic_ns() + kTimeoutNs;
  for (size_t i = 0; i < count; ++i) {
    if (stacks[i].unasked != nullptr) continue;
    wait_for(answers[i], number, deadline_ns);
    take_answer(answers[i], number, arena, stacks[i]);
  }
  return !arena.failed();
}

void forget_thread_stacks() {
  collect_lock.reset();
}

}  // namespace assay::inproc
