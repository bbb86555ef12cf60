#include "inject/inproc/lifecycle/lifecycle.h"

#include <atomic>

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "inject/inproc/cpu/cpu_profiler.h"
#include "inject/inproc/http/http_server.h"
#include "inject/inproc/lifecycle/keeper.h"
#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/lifecycle/switches.h"
#include "inject/inproc/cpu/thread_stacks.h"

namespace assay::inproc {
namespace {

std::atomic<bool> begun, active;
std::atomic<int> forked_pid;  // of this process, if it is a forked child

// In a forked child only the forking thread exists: locks may be held by threads of the parent, and
// timers, servers and our own threads do not exist.
void in_child() {
  forked_pid.store(getpid());
  forget_error_lock();
  forget_own_threads();
  forget_keeper();
  cpu_profile_forget();
  forget_thread_stacks();
  forget_http_server();
  switches_in_child();
}

__attribute__((constructor)) void load() {
  if (getauxval(AT_SECURE) != 0) return;
  begin_lifecycle();
  start_switches();
}

__attribute__((destructor)) void unload() {
  if (active.load()) end_switches();
}

}  // namespace

void begin_lifecycle() {
  if (begun.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, in_child);
  active.store(true);
}

bool is_active() {
  return active.load(std::memory_order_relaxed);
}

void became_daemon() {
  // A child of vfork runs in its parent's memory, but is another process.
  if (!is_active() || forked_pid.load() != getpid()) return;
  forked_pid.store(0);
  switches_in_daemon();
}

}  // namespace assay::inproc
