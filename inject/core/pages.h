// Memory directly from the kernel, for tables inside a target: never from its allocator, and not
// through functions that the target, or Assay, may have hooked.
//
// Zeroed and touched lazily: a large table costs only the pages that are used. Async-signal-safe;
// any thread.
#pragma once

#include <cstddef>

namespace assay::inject {

// Null when there is none. `name` shows in /proc/PID/maps where the kernel can (static text).
void* map_pages(size_t bytes, const char* name);
void unmap_pages(void* at, size_t bytes);

// A table of `count` items, each all zero bits.
template <class T>
T* map_table(size_t count, const char* name) {
  return static_cast<T*>(map_pages(count * sizeof(T), name));
}

}  // namespace assay::inject
