// What attach.cpp provides for the rest of the library: changing the slots that it has hooked.
//
// Threads: any. One thread at a time changes slots; a thread that forks has priority.
#pragma once

namespace assay::inject {

bool has_hooked_slots();

// Hooks new objects: now / at the next check of any thread / if a rescan is due.
void rescan_now();
void ask_for_rescan();
void rescan_if_due();

// For a fork: forbid changing slots / allow it again / in a child, reset the right.
void hold_changes();
void release_changes();
void forget_changes();

}  // namespace assay::inject
