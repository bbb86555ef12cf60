// Snapshots of the profiles that are always kept: contention, thread creations, stacks, heap.
//
// Each fills a Profile whose samples are in `arena` (stacks may point into tables that are never
// freed). Not async-signal-safe. Failures: false when memory is short, or the profile is not
// available here.
#pragma once

#include "inject/inproc/heap/heap_source.h"
#include "inject/inproc/write/profile.h"

namespace assay::inproc {

bool collect_mutex(Arena& arena, Profile& profile);  // mutexes and reader-writer locks
bool collect_block(Arena& arena, Profile& profile);  // those, conditions and semaphores
bool collect_thread_creations(Arena& arena, Profile& profile);
bool collect_thread_profile(Arena& arena, Profile& profile);
bool collect_allocs(Arena& arena, Profile& profile);  // the heap, showing what was allocated first

// Adds up samples of the same stack and labels, and drops those whose sum is zero.
bool merge_samples(Profile& profile, Arena& arena);
// Replaces `later` by the difference of the two.
bool subtract_profile(const Profile& earlier, Profile& later, Arena& arena);

}  // namespace assay::inproc
