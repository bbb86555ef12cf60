#include "inject/preload/real_allocator.h"

#include <cerrno>
#include <cstring>

#include <dlfcn.h>

#include "inject/preload/boot_memory.h"
#include "inject/preload/hooks.h"

namespace assay::inject {

namespace {

bool is_resolving = false;

void* boot_aligned(size_t alignment, size_t bytes) {
  if (is_resolving) return boot_allocate(bytes, alignment);
  resolve_real_allocator();
  return real.memalign(alignment, bytes);
}
void* boot_malloc(size_t bytes) {
  if (is_resolving) return boot_allocate(bytes, 16);
  resolve_real_allocator();
  return real.malloc(bytes);
}
void* boot_calloc(size_t count, size_t each) {
  size_t bytes = 0;
  if (is_resolving)
    return __builtin_mul_overflow(count, each, &bytes) ? nullptr : boot_allocate(bytes, 16);
  resolve_real_allocator();
  return real.calloc(count, each);
}
void* boot_realloc(void* at, size_t bytes) {
  if (!is_resolving) {
    resolve_real_allocator();
    return real.realloc(at, bytes);
  }
  void* moved = boot_allocate(bytes, 16);
  if (moved && at) std::memcpy(moved, at, boot_bytes(at) < bytes ? boot_bytes(at) : bytes);
  return moved;
}
void* boot_reallocarray(void* at, size_t count, size_t each) {
  resolve_real_allocator();
  return real.reallocarray(at, count, each);
}
void boot_free(void* at) {
  if (is_resolving) return;
  resolve_real_allocator();
  real.free(at);
}
void* boot_aligned_alloc(size_t alignment, size_t bytes) {
  resolve_real_allocator();
  return real.aligned_alloc(alignment, bytes);
}
int boot_posix_memalign(void** out, size_t alignment, size_t bytes) {
  resolve_real_allocator();
  return real.posix_memalign(out, alignment, bytes);
}
void* boot_valloc(size_t bytes) {
  resolve_real_allocator();
  return real.valloc(bytes);
}
void* boot_pvalloc(size_t bytes) {
  resolve_real_allocator();
  return real.pvalloc(bytes);
}

void* find(const char* name) {
  void* in_use = dlsym(RTLD_DEFAULT, name);
  return is_own_hook(in_use) ? dlsym(RTLD_NEXT, name) : in_use;
}

// What an allocator library leaves out; its own malloc does for the rest.
void* missing_reallocarray(void* at, size_t count, size_t each) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return real.realloc(at, bytes);
}

template <class Function>
void take(Function*& slot, const char* name) {
  if (void* at = find(name)) slot = reinterpret_cast<Function*>(at);
}

}  // namespace

RealAllocator real = {boot_malloc, boot_calloc,        boot_realloc,        boot_reallocarray,
                      boot_free,   boot_aligned_alloc, boot_posix_memalign, boot_aligned,
                      boot_valloc, boot_pvalloc};

void resolve_real_allocator() {
  if (is_resolving || real.malloc != boot_malloc) return;
  is_resolving = true;
  RealAllocator found = real;
  found.reallocarray = missing_reallocarray;
  take(found.malloc, "malloc");
  take(found.calloc, "calloc");
  take(found.realloc, "realloc");
  take(found.reallocarray, "reallocarray");
  take(found.free, "free");
  take(found.aligned_alloc, "aligned_alloc");
  take(found.posix_memalign, "posix_memalign");
  take(found.memalign, "memalign");
  take(found.valloc, "valloc");
  take(found.pvalloc, "pvalloc");
  dlerror();  // whatever a missing one left behind is not the program's
  real = found;
  is_resolving = false;
}

bool is_interposed() {
  return is_own_hook(dlsym(RTLD_DEFAULT, "malloc"));
}

}  // namespace assay::inject
