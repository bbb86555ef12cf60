// Keeper: the one thread that does what a signal handler or a hook must not do itself.
//
// Started at first use. Other threads wake it; it runs the tasks in turn, and each returns after
// how many milliseconds it must be called again (kNever: when woken). wake_keeper() is
// async-signal-safe. A forked child has no keeper until it adds a task.
#pragma once

#include <cstdint>

namespace assay::inproc {

inline constexpr int64_t kNever = -1;

using KeeperTask = int64_t (*)();

// False: no thread could be started, or there are too many tasks. Adding a task a second time has
// no effect.
bool keep(KeeperTask task);
void wake_keeper();
void forget_keeper();  // in a forked child

}  // namespace assay::inproc
