#include "inject/preload/hooks/real_allocator.h"

#include <cerrno>

#include "inject/preload/hooks/hooks.h"
#include "inject/preload/hooks/loaded_object.h"

namespace assay::inject {

namespace {

void* first_malloc(size_t bytes) {
  resolve_real_allocator();
  return real.malloc(bytes);
}
void* first_calloc(size_t count, size_t each) {
  resolve_real_allocator();
  return real.calloc(count, each);
}
void* first_realloc(void* at, size_t bytes) {
  resolve_real_allocator();
  return real.realloc(at, bytes);
}
void* first_reallocarray(void* at, size_t count, size_t each) {
  resolve_real_allocator();
  return real.reallocarray(at, count, each);
}
void first_free(void* at) {
  resolve_real_allocator();
  real.free(at);
}
void* first_aligned_alloc(size_t alignment, size_t bytes) {
  resolve_real_allocator();
  return real.aligned_alloc(alignment, bytes);
}
int first_posix_memalign(void** out, size_t alignment, size_t bytes) {
  resolve_real_allocator();
  return real.posix_memalign(out, alignment, bytes);
}
void* first_memalign(size_t alignment, size_t bytes) {
  resolve_real_allocator();
  return real.memalign(alignment, bytes);
}
void* first_valloc(size_t bytes) {
  resolve_real_allocator();
  return real.valloc(bytes);
}
void* first_pvalloc(size_t bytes) {
  resolve_real_allocator();
  return real.pvalloc(bytes);
}

// A function that the allocator library lacks must not come from another library: its realloc is
// used instead.
void* reallocarray_by_realloc(void* at, size_t count, size_t each) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return real.realloc(at, bytes);
}

template <class Function>
void take(Function*& slot, const char* name, const void* after) {
  if (void* at = find_definition(name, after).at) slot = reinterpret_cast<Function*>(at);
}

}  // namespace

RealAllocator real = {first_malloc, first_calloc,        first_realloc,        first_reallocarray,
                      first_free,   first_aligned_alloc, first_posix_memalign, first_memalign,
                      first_valloc, first_pvalloc};

void resolve_real_allocator() {
  if (real.malloc != first_malloc) return;
  const void* after = is_interposed() ? own_code() : nullptr;
  RealAllocator found = real;
  take(found.malloc, "malloc", after);
  take(found.calloc, "calloc", after);
  take(found.realloc, "realloc", after);
  take(found.free, "free", after);
  take(found.aligned_alloc, "aligned_alloc", after);
  take(found.posix_memalign, "posix_memalign", after);
  take(found.memalign, "memalign", after);
  take(found.valloc, "valloc", after);
  take(found.pvalloc, "pvalloc", after);
  bool has_own =
      find_definition("reallocarray", after).object == find_definition("malloc", after).object;
  found.reallocarray = reallocarray_by_realloc;
  if (has_own) take(found.reallocarray, "reallocarray", after);
  real = found;
}

bool is_interposed() {
  return is_own_hook(find_definition("malloc").at);
}

bool is_allocator_in_program() {
  return find_definition("malloc").is_in_program;
}

}  // namespace assay::inject
