// The functions that are called instead of the allocator's, by an exported malloc or a patched
// slot.
//
// Each counts the bytes and calls the real function; only sampled allocations, and frees of blocks
// that may be sampled, leave the fast path. Same results, errno and alignment as the real ones. Any
// thread.
#pragma once

#include <cstddef>

namespace assay::inject {

struct Hook {
  const char* name;
  void* function;
  void** real;  // the pointer in `real` that it leads to
};

// Every hook, also by the names under which programs call them.
struct HookList {
  const Hook* begin;
  size_t count;
};
HookList all_hooks();

// Whether it is one of our hooks.
bool is_own_hook(const void* function);
// An address inside the object that the hooks are in.
const void* own_code();

}  // namespace assay::inject
