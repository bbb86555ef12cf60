// Notices when an attached program loads more objects, so that their slots are hooked too.
//
// dlopen looks at who calls it (for $ORIGIN and RUNPATH), so our hook may only come between where
// that does not matter: a file named by its path. There the new objects are hooked before dlopen
// returns. In all other cases the hook asks for a rescan soon and jumps on, leaving the caller what
// it was.
#pragma once

#include "inject/preload/hooks/hooks.h"

namespace assay::inject {

void find_dlopen();
HookList dlopen_hooks();

}  // namespace assay::inject
