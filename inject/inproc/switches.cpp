#include "inject/inproc/switches.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "assay/assay.h"
#include "inject/inproc/cpu_switch.h"
#include "inject/inproc/heap_switch.h"
#include "inject/inproc/keeper.h"
#include "inject/inproc/last_error.h"
#include "inject/inproc/say.h"

namespace assay::inproc {
namespace {

// Which process has taken these switches: the environment is inherited, and libassay may be there
// twice (linked as libassay.a and preloaded).
constexpr const char* kOwnerMark = "ASSAY_PID";

char http_address[256];
int serve_attempts;

// "%p" in an address is the process id, so that a path can be each process's own.
void expand(const char* from, char* to, size_t room) {
  size_t made = 0;
  for (; *from != 0 && made + 12 < room; ++from) {
    if (from[0] == '%' && from[1] == 'p') {
      made += static_cast<size_t>(snprintf(to + made, room - made, "%d", getpid()));
      ++from;
    } else {
      to[made++] = *from;
    }
  }
  to[made] = 0;
}

void serve(bool inherited) {
  const char* wanted = getenv("ASSAY_HTTP");
  if (wanted == nullptr || wanted[0] == 0) return;
  expand(wanted, http_address, sizeof http_address);
  if (assay_serve(http_address, nullptr) >= 0) return;
  // A process that the serving one started inherits the address and finds it taken: that is no
  // news.
  char sentence[256];
  if (!inherited) say("%s", copy_last_error(sentence, sizeof sentence));
}

// A daemon's parent holds the port until it is gone.
int64_t serve_again() {
  constexpr int kMaxAttempts = 100;
  constexpr int64_t kPauseMs = 200;
  if (serve_attempts <= 0) return kNever;
  if (assay_serve(http_address, nullptr) >= 0) {
    serve_attempts = 0;
    return kNever;
  }
  if (++serve_attempts > kMaxAttempts) serve_attempts = 0;
  return serve_attempts > 0 ? kPauseMs : kNever;
}

}  // namespace

void start_switches() {
  bool wanted = false;
  for (const char* name : {"CPUPROFILE", "HEAPPROFILE", "ASSAY_HTTP"})
    wanted = wanted || getenv(name) != nullptr;
  if (!wanted) return;
  const char* owner = getenv(kOwnerMark);
  if (owner != nullptr && std::atoi(owner) == getpid()) return;
  char own[16];
  snprintf(own, sizeof own, "%d", getpid());
  bool inherited = owner != nullptr;
  setenv(kOwnerMark, own, 1);
  start_cpu_switch();
  start_heap_switch();
  serve(inherited);
}

void end_switches() {
  end_cpu_switch();
  end_heap_switch();
  assay_serve_stop();
}

void switches_in_child() {
  serve_attempts = 0;
  cpu_switch_in_child();
  heap_switch_in_child();
  // Who may be asked by a signal needs somebody to answer: the handler must not do it itself, it
  // may have interrupted malloc. Other children get no thread: they may be about to execute
  // something.
  if (!cpu_switch_has_signal() && !heap_switch_has_signal()) return;
  cpu_switch_in_daemon();
  heap_switch_in_daemon();
}

void switches_in_daemon() {
  const char* wanted = getenv("ASSAY_HTTP");
  if (wanted != nullptr && wanted[0] != 0) {
    expand(wanted, http_address, sizeof http_address);
    serve_attempts = 1;
    keep(serve_again);
  }
  cpu_switch_in_daemon();
  heap_switch_in_daemon();
}

}  // namespace assay::inproc
