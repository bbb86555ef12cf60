// What attach.cpp tells and does for the rest of the library: the slots that it has hooked.
//
// Threads: any. One at a time changes slots; who forks goes before others.
#pragma once

namespace assay::inject {

bool has_hooked_slots();

// Hooks what is new: now / at the next look of any thread / if that is due.
void rescan_now();
void ask_for_rescan();
void rescan_if_due();

// For a fork: keep everybody from changing slots / let them again / forget who did, in a child.
void hold_changes();
void release_changes();
void forget_changes();

}  // namespace assay::inject
