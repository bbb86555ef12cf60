#include "inject/preload/hooks/mmap_hooks.h"

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <sys/syscall.h>

#include "inject/core/syscalls.h"
#include "inject/preload/heap_sampler.h"
#include "inject/preload/tables/live_table.h"
#include "inject/preload/hooks/loaded_object.h"
#include "inject/preload/thread_state.h"

namespace {

constexpr int kAnonymous = 0x20, kFixed = 0x10;
std::atomic<bool> is_wanted{false};

}  // namespace

using namespace assay::inject;

extern "C" {

void* assay_hook_mmap(void* at, size_t bytes, int protection, int flags, int fd, long offset) {
  long result = raw_syscall(SYS_mmap, reinterpret_cast<long>(at), static_cast<long>(bytes),
                            protection, flags, fd, offset);
  if (is_error(result)) {
    errno = static_cast<int>(-result);
    return reinterpret_cast<void*>(-1);
  }
  void* mapped = reinterpret_cast<void*>(result);
  if (is_wanted.load(std::memory_order_relaxed) && (flags & kAnonymous) && !(flags & kFixed) &&
      count_bytes(bytes))
    look_at_allocation(mapped, bytes, HeapFunction::mmap, __builtin_return_address(0));
  return mapped;
}

int assay_hook_munmap(void* at, size_t bytes) {
  if (__builtin_expect(live_table.may_hold(at), 0)) look_at_free(at);
  long result = raw_syscall(SYS_munmap, reinterpret_cast<long>(at), static_cast<long>(bytes));
  if (!is_error(result)) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

}  // extern "C"

#define ASSAY_EXPORT(name, hook) \
  asm(".globl " #name "\n.type " #name ", @function\n.set " #name ", assay_hook_" #hook)
ASSAY_EXPORT(mmap, mmap);
ASSAY_EXPORT(mmap64, mmap);
ASSAY_EXPORT(munmap, munmap);

namespace assay::inject {

namespace {

void *real_mmap = nullptr, *real_mmap64 = nullptr, *real_munmap = nullptr;
const Hook kHooks[] = {
    {"mmap", reinterpret_cast<void*>(assay_hook_mmap), &real_mmap},
    {"mmap64", reinterpret_cast<void*>(assay_hook_mmap), &real_mmap64},
    {"munmap", reinterpret_cast<void*>(assay_hook_munmap), &real_munmap},
};

}  // namespace

void set_mmap_sampling(bool wanted) {
  for (const Hook& hook : kHooks) {
    if (wanted && !*hook.real) *hook.real = find_definition(hook.name).at;
  }
  is_wanted.store(wanted, std::memory_order_relaxed);
}

bool is_sampling_mmap() {
  return is_wanted.load(std::memory_order_relaxed);
}

HookList mmap_hooks() {
  return {kHooks, sizeof kHooks / sizeof *kHooks};
}

}  // namespace assay::inject
