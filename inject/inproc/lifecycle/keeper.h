// Keeper: the one thread that does what a signal handler or a hook must not do itself.
//
// Started when first wanted. Others wake it; it runs the tasks in turn, and each says in how many
// milliseconds it wants to be called again (kNever: when woken). wake_keeper() is
// async-signal-safe. A forked child has no keeper until it asks for one.
#pragma once

#include <cstdint>

namespace assay::inproc {

inline constexpr int64_t kNever = -1;

using KeeperTask = int64_t (*)();

// False: no thread could be started, or there are too many tasks. Adding a task twice is adding it
// once.
bool keep(KeeperTask task);
void wake_keeper();
void forget_keeper();  // in a forked child

}  // namespace assay::inproc
