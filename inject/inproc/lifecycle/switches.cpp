#include "inject/inproc/lifecycle/switches.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "assay/assay.h"
#include "inject/inproc/cpu/cpu_switch.h"
#include "inject/inproc/heap/heap_switch.h"
#include "inject/inproc/lifecycle/keeper.h"
#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/http/port_handover.h"
#include "inject/inproc/lifecycle/process_mark.h"
#include "inject/inproc/write/profile.h"
#include "inject/inproc/lifecycle/say.h"

namespace assay::inproc {
namespace {

ProcessMark mark;
char http_address[256];

// Used by the keeper: the state of the address of ASSAY_HTTP.
enum class Port {
  settled,   // served here, or by another process permanently
  wanted,    // in use by the process that started this one
  lent,      // released for a child
  expected,  // a daemon's parent holds it until it exits
};
std::atomic<Port> port;
std::atomic<bool> give_up_asked;
int attempts;
int64_t next_look_ns;  // the keeper runs more often, for other tasks

// "%p" in an address is the process id, so that each process can have its own path.
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

bool try_to_serve() {
  if (assay_serve(http_address, nullptr) < 0) return false;
  port = Port::settled;
  return true;
}

// Asks the process that has it, with growing pauses: a parent may not have reached its wait yet.
int64_t want_port() {
  constexpr int kMaxAttempts = 9;
  constexpr int kUnknownAttempts = 3;  // a program that has just started may soon only wait
  constexpr int64_t kFirstPauseMs = 20;
  Occupation occupation = attempts < kUnknownAttempts ? Occupation::waits : host_occupation();
  bool is_given = ask_for_port(http_address, mark.secret, secure_getenv("ASSAY_TOKEN"), occupation);
  if (attempts >= kMaxAttempts) return kNever;
  int64_t pause_ms = kFirstPauseMs << attempts++;
  return is_given ? kFirstPauseMs : pause_ms;
}

int64_t expect_port() {
  constexpr int kMaxAttempts = 100;
  constexpr int64_t kPauseMs = 200;
  return ++attempts < kMaxAttempts ? kPauseMs : kNever;
}

// After how many milliseconds to try again after a failure; kNever: another process keeps it.
int64_t pause_of(Port state) {
  constexpr int64_t kLentMs = 1000;  // a child keeps the address as long as it runs
  if (state == Port::lent) return kLentMs;
  return state == Port::wanted ? want_port() : expect_port();
}

int64_t mind_port() {
  bool is_given_up = give_up_asked.exchange(false);
  if (is_given_up) {
    assay_serve_stop();
    port = Port::lent;
  }
  int64_t now_ns = monotonic_ns();
  if (port == Port::settled) return kNever;
  if (!is_given_up) {
    if (now_ns < next_look_ns) return (next_look_ns - now_ns) / 1'000'000 + 1;
    if (try_to_serve()) return kNever;
  }
  int64_t pause_ms = pause_of(port);
  if (pause_ms == kNever) port = Port::settled;
  next_look_ns = now_ns + pause_ms * 1'000'000;
  return pause_ms;
}

void mind(Port state) {
  attempts = 0;
  next_look_ns = 0;
  port = state;
  if (keep(mind_port)) wake_keeper();
}

void serve() {
  const char* wanted = getenv("ASSAY_HTTP");
  if (wanted == nullptr || wanted[0] == 0) return;
  expand(wanted, http_address, sizeof http_address);
  if (try_to_serve()) return;
  char sentence[256];
  if (mark.is_inherited)
    mind(Port::wanted);
  else
    say("%s", copy_last_error(sentence, sizeof sentence));
}

}  // namespace

void start_switches() {
  bool wanted = false;
  for (const char* name : {"CPUPROFILE", "HEAPPROFILE", "ASSAY_HTTP"})
    wanted = wanted || getenv(name) != nullptr;
  if (!wanted) return;
  mark = take_process_mark();
  if (mark.lineage == Lineage::repeated) return;
  if (mark.lineage == Lineage::executed && !mark.is_inherited) {
    unmark_environment_path("CPUPROFILE");
    unmark_environment_path("HEAPPROFILE");
  }
  start_cpu_switch();
  start_heap_switch();
  serve();
}

void end_switches() {
  end_cpu_switch();
  end_heap_switch();
  port = Port::settled;  // not taken again during exit
  assay_serve_stop();
}

void switches_in_child() {
  port = Port::settled;
  give_up_asked = false;
  cpu_switch_in_child();
  heap_switch_in_child();
  // A child that gets profile requests by signal needs a thread that answers: the handler must not
  // do it itself, because it may have interrupted malloc. Other children get no thread: they may be
  // about to execute another program.
  if (!cpu_switch_has_signal() && !heap_switch_has_signal()) return;
  cpu_switch_in_daemon();
  heap_switch_in_daemon();
}

void switches_in_daemon() {
  const char* wanted = getenv("ASSAY_HTTP");
  if (wanted != nullptr && wanted[0] != 0) {
    expand(wanted, http_address, sizeof http_address);
    mind(Port::expected);
  }
  cpu_switch_in_daemon();
  heap_switch_in_daemon();
}

void answer_handover_switch(HttpExchange& exchange) {
  answer_handover(exchange, mark.secret, [] {
    give_up_asked = true;
    if (keep(mind_port)) wake_keeper();
  });
}

}  // namespace assay::inproc
