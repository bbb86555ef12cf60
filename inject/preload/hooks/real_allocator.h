// The real allocation functions that the hooks call: the next ones in the program's search order
// when the library is preloaded or linked, the program's own when it is attached.
//
// Until they are looked up each pointer leads to a function that does so. The lookup
// (loaded_object.h) does not allocate, so the first allocation of a process may trigger it. It
// happens there, or when attaching, before other threads use the pointers.
#pragma once

#include <cstddef>

namespace assay::inject {

struct RealAllocator {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  void (*free)(void*);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
};

extern RealAllocator real;

void resolve_real_allocator();

// Whether the program's malloc leads to our hooks.
bool is_interposed();
// Whether the allocator is part of the main program, which then calls it directly and not through a
// slot.
bool is_allocator_in_program();

}  // namespace assay::inject
