// Puts hooks into the slots (GOT entries and relocated pointers) through which loaded objects call,
// and removes them again.
//
// A slot is changed only when it holds exactly the function that the hook replaces, or has not been
// bound yet and names a function that the object does not define itself: an object that uses
// another allocator, or one of its own, is left alone. Pages that are read-only after relocation
// are opened for the change and closed again. Objects that another thread is still loading are left
// for the next pass. Only memory of objects that dl_iterate_phdr lists at that moment is touched,
// so a closed object is never written to. Threads: one caller at a time; all others may run, call
// and load meanwhile. Holds no lock of its own; takes the dynamic linker's (recursive) lock. Does
// not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inject/preload/hooks/hooks.h"

namespace assay::inject {

// The number of slots changed. Lists may be empty. All lists are handled in one pass, since the
// injector may hold the calling thread meanwhile.
size_t patch_slots(std::span<const HookList> lists);
size_t restore_slots(std::span<const HookList> lists);

}  // namespace assay::inject
