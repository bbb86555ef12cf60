// Hooks for operator new and delete of an allocator library that has its own (tcmalloc, jemalloc):
// they do not call malloc, so hooking malloc is not enough. Only put into slots, never exported:
// where operator new calls malloc, it needs no hook.
#pragma once

#include "inject/preload/hooks/hooks.h"

namespace assay::inject {

// Empty when the program's operator new is not the allocator's own. Looks the functions up.
HookList find_operator_hooks();

}  // namespace assay::inject
