#include "inject/preload/hooks/hooks.h"

#include <cstdint>

#include "inject/preload/heap_sampler.h"
#include "inject/preload/tables/live_table.h"
#include "inject/preload/hooks/real_allocator.h"
#include "inject/preload/thread_state.h"

#define ASSAY_CALLER __builtin_return_address(0)

namespace assay::inject {
namespace {

// The slow halves stay out of line, so that the fast ones need no frame of their own.
__attribute__((noinline)) void* sampled(void* at, size_t bytes, HeapFunction function,
                                        const void* caller) {
  look_at_allocation(at, bytes, function, caller);
  return at;
}

__attribute__((noinline)) void free_known(void* at) {
  look_at_free(at);
  real.free(at);
}

// A block that may be sampled: its free is reported before the allocator can give the block to
// another thread.
__attribute__((noinline)) void* realloc_known(void* at, size_t bytes, const void* caller) {
  LiveEntry before;
  bool was_sampled = forget_sample(at, before);
  void* moved = real.realloc(at, bytes);
  if (!moved && bytes != 0 && was_sampled) {  // it failed: the old block still exists
    sample_allocation(at, before.bytes, HeapFunction::realloc, caller);
    return nullptr;
  }
  if (moved && count_bytes(bytes)) look_at_allocation(moved, bytes, HeapFunction::realloc, caller);
  return moved;
}

}  // namespace
}  // namespace assay::inject

using namespace assay::inject;

extern "C" {

void* assay_hook_malloc(size_t bytes) {
  if (count_bytes(bytes))
    return sampled(real.malloc(bytes), bytes, HeapFunction::malloc, ASSAY_CALLER);
  return real.malloc(bytes);
}

void* assay_hook_calloc(size_t count, size_t each) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes))
    return real.calloc(count, each);  // it will refuse
  if (count_bytes(bytes))
    return sampled(real.calloc(count, each), bytes, HeapFunction::calloc, ASSAY_CALLER);
  return real.calloc(count, each);
}

void* assay_hook_realloc(void* at, size_t bytes) {
  if (at && live_table.may_hold(at)) return realloc_known(at, bytes, ASSAY_CALLER);
  if (count_bytes(bytes))
    return sampled(real.realloc(at, bytes), bytes, HeapFunction::realloc, ASSAY_CALLER);
  return real.realloc(at, bytes);
}

void* assay_hook_reallocarray(void* at, size_t count, size_t each) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) return real.reallocarray(at, count, each);
  if (at && live_table.may_hold(at)) return realloc_known(at, bytes, ASSAY_CALLER);
  if (count_bytes(bytes))
    return sampled(real.realloc(at, bytes), bytes, HeapFunction::realloc, ASSAY_CALLER);
  return real.realloc(at, bytes);
}

void assay_hook_free(void* at) {
  if (__builtin_expect(live_table.may_hold(at), 0)) return free_known(at);
  real.free(at);
}

void* assay_hook_aligned_alloc(size_t alignment, size_t bytes) {
  if (count_bytes(bytes))
    return sampled(real.aligned_alloc(alignment, bytes), bytes, HeapFunction::aligned,
                   ASSAY_CALLER);
  return real.aligned_alloc(alignment, bytes);
}

int assay_hook_posix_memalign(void** out, size_t alignment, size_t bytes) {
  bool is_due = count_bytes(bytes);
  int result = real.posix_memalign(out, alignment, bytes);
  if (is_due && result == 0) look_at_allocation(*out, bytes, HeapFunction::aligned, ASSAY_CALLER);
  return result;
}

void* assay_hook_memalign(size_t alignment, size_t bytes) {
  if (count_bytes(bytes))
    return sampled(real.memalign(alignment, bytes), bytes, HeapFunction::aligned, ASSAY_CALLER);
  return real.memalign(alignment, bytes);
}

void* assay_hook_valloc(size_t bytes) {
  if (count_bytes(bytes))
    return sampled(real.valloc(bytes), bytes, HeapFunction::aligned, ASSAY_CALLER);
  return real.valloc(bytes);
}

void* assay_hook_pvalloc(size_t bytes) {
  if (count_bytes(bytes))
    return sampled(real.pvalloc(bytes), bytes, HeapFunction::aligned, ASSAY_CALLER);
  return real.pvalloc(bytes);
}

}  // extern "C"

// The names that programs call. Set here and not as C++ functions: every header declares malloc its
// own way.
#define ASSAY_EXPORT(name) \
  asm(".globl " #name "\n.type " #name ", @function\n.set " #name ", assay_hook_" #name)
ASSAY_EXPORT(malloc);
ASSAY_EXPORT(calloc);
ASSAY_EXPORT(realloc);
ASSAY_EXPORT(reallocarray);
ASSAY_EXPORT(free);
ASSAY_EXPORT(aligned_alloc);
ASSAY_EXPORT(posix_memalign);
ASSAY_EXPORT(memalign);
ASSAY_EXPORT(valloc);
ASSAY_EXPORT(pvalloc);

namespace assay::inject {

namespace {

#define ASSAY_HOOK(name) \
  { #name, reinterpret_cast < void*>(assay_hook_##name), reinterpret_cast < void**>(&real.name) }
const Hook kHooks[] = {
    ASSAY_HOOK(malloc),         ASSAY_HOOK(calloc),   ASSAY_HOOK(realloc),
    ASSAY_HOOK(reallocarray),   ASSAY_HOOK(free),     ASSAY_HOOK(aligned_alloc),
    ASSAY_HOOK(posix_memalign), ASSAY_HOOK(memalign), ASSAY_HOOK(valloc),
    ASSAY_HOOK(pvalloc),
};

}  // namespace

HookList all_hooks() {
  return {kHooks, sizeof kHooks / sizeof *kHooks};
}

const void* own_code() {
  return reinterpret_cast<const void*>(assay_hook_malloc);
}

bool is_own_hook(const void* function) {
  for (const Hook& hook : kHooks) {
    if (hook.function == function) return true;
  }
  return false;
}

}  // namespace assay::inject
