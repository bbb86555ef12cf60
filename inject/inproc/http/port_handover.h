// A port that goes from a program to the one it waits for.
//
// With ASSAY_HTTP in the environment of `timeout 10 ./server`, both programs are to serve at one
// address, and it is the server that is meant. So a process that finds its address taken asks the
// one that it was started by, with that one's mark, over the address itself. That one gives it up
// if it does nothing but wait for a child to end (sh, timeout, xargs, …), and takes it again when
// it is free. In `./server | tee log` the two are started alike and both ask: one that reads its
// input or sleeps, alone and without children, gives the address up to one that does more. A
// program with work of its own keeps it: its helpers go without. Neither side ever waits for the
// other in a thread of the host.
#pragma once

#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

inline constexpr const char* kHandoverPath = "/assay/handover";

// What the host does at this moment; who does less gives way to who does more.
enum class Occupation {
  waits,   // every thread waits for a child process or a signal
  reads,   // its only thread waits for standard input, and it has no children
  sleeps,  // its only thread sleeps, and it has no children
  works,
};
Occupation host_occupation();

// On the server's threads. Calls `give_up` when the request carries `secret` and the host only
// waits, or does less than who asks.
void answer_handover(HttpExchange& exchange, const char* secret, void (*give_up)());

// True: the process at `address` has given it up, or is about to. `occupation`: of this host;
// `waits` while it is not known yet.
bool ask_for_port(const char* address, const char* secret, const char* token,
                  Occupation occupation);

}  // namespace assay::inproc
