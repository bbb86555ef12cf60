// Notices when an attached program loads more objects, so that their slots are hooked too.
//
// dlopen depends on its caller (for $ORIGIN and RUNPATH), so the hook may call it only where that
// does not matter: for a file named by its path. Then the new objects are hooked before dlopen
// returns. In all other cases the hook requests a rescan and jumps to dlopen, so that the caller
// stays the same.
#pragma once

#include "inject/preload/hooks/hooks.h"

namespace assay::inject {

void find_dlopen();
HookList dlopen_hooks();

}  // namespace assay::inject
