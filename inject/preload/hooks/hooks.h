// The functions that stand before the allocator's: what an exported malloc, or a patched slot,
// leads to.
//
// Each counts the bytes and goes on to the real function; only what is sampled, and frees that may
// be of a sampled block, leave the fast path. Same results, errno and alignment as the real ones.
// Any thread.
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

// Is it one of ours?
bool is_own_hook(const void* function);
// An address inside the object that the hooks are in.
const void* own_code();

}  // namespace assay::inject
