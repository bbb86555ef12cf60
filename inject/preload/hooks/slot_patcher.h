// Puts hooks into the slots (GOT entries and relocated pointers) through which loaded objects call,
// and takes them out again.
//
// A slot is changed only when it holds the very function that the hook stands before, or has not
// been bound yet and names a function that the object does not define itself: an object that uses
// another allocator, or one of its own, is left alone. Pages that are read-only
// after relocation are opened for the change and closed again. Objects that another thread is still
// loading are left for the next pass. The only memory touched is that of objects that
// dl_iterate_phdr vouches for at that moment, so a closed one is never written to. Threads: one
// caller at a time; all others may run, call and load meanwhile. Holds no lock of ours; takes the
// dynamic linker's own (recursive) one. Does not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inject/preload/hooks/hooks.h"

namespace assay::inject {

// The number of slots changed. Empty lists are no hindrance; all lists in one pass, since the
// thread that makes it may be held meanwhile.
size_t patch_slots(std::span<const HookList> lists);
size_t restore_slots(std::span<const HookList> lists);

}  // namespace assay::inject
