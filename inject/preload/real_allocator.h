// The allocation functions that the hooks stand before: the next ones in the program's search order
// when the library is preloaded or linked, the ones that the program uses when it is attached.
//
// Until they are looked up each pointer leads to a function that does so; the lookup may allocate,
// from boot memory. Looked up at the first allocation of a process, or by attaching, before other
// threads come here.
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

// Does the program's own malloc lead to our hooks?
bool is_interposed();

}  // namespace assay::inject
