// Passes the port from a wrapper program to the server that it waits for.
//
// With ASSAY_HTTP in the environment of `timeout 10 ./server`, both programs try to serve at one
// address, but the user means the server. So a process that finds its address in use asks the
// process that started it, over the address itself and with the secret of that process's mark. The
// parent releases the address if it only waits for a child to end (sh, timeout, xargs, …), and
// takes it again when it is free. In `./server | tee log` both programs have the same parent and
// both ask: a process that reads its input or sleeps, with one thread and without children,
// releases the address to one that does more. A program with work of its own keeps the address, and
// the programs it starts have none. No thread of the host ever waits for this.
#pragma once

#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

inline constexpr const char* kHandoverPath = "/assay/handover";

// What the host does at this moment; a process that does less releases the address to one that does
// more.
enum class Occupation {
  waits,   // every thread waits for a child process or a signal
  reads,   // its only thread waits for standard input, and it has no children
  sleeps,  // its only thread sleeps, and it has no children
  works,
};
Occupation host_occupation();

// On the server's threads. Calls `give_up` when the request carries `secret` and the host only
// waits, or does less than the process that asks.
void answer_handover(HttpExchange& exchange, const char* secret, void (*give_up)());

// True: the process at `address` has released it, or is about to. `occupation`: of this host;
// `waits` while it is not known yet.
bool ask_for_port(const char* address, const char* secret, const char* token,
                  Occupation occupation);

}  // namespace assay::inproc
