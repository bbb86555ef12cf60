#include "inject/preload/hooks/operator_hooks.h"

#include <cstdint>

#include "inject/preload/heap_sampler.h"
#include "inject/preload/tables/live_table.h"
#include "inject/preload/hooks/loaded_object.h"
#include "inject/preload/hooks/real_allocator.h"
#include "inject/preload/thread_state.h"

namespace assay::inject {

namespace {

// Every form takes the size or the block first, and at most two more arguments in registers
// (alignment, size, std::nothrow): they are passed on unchanged.
using New = void* (*)(size_t, uintptr_t, uintptr_t);
using Delete = void (*)(void*, uintptr_t, uintptr_t);

constexpr size_t kNews = 8, kDeletes = 12;
void* real_operators[kNews + kDeletes];

template <size_t kIndex>
void* hook_new(size_t bytes, uintptr_t a, uintptr_t b) {
  bool is_due = count_bytes(bytes);
  void* at = reinterpret_cast<New>(real_operators[kIndex])(bytes, a, b);
  if (is_due)
    look_at_allocation(at, bytes, HeapFunction::operator_new, __builtin_return_address(0));
  return at;
}

template <size_t kIndex>
void hook_delete(void* at, uintptr_t a, uintptr_t b) {
  if (__builtin_expect(live_table.may_hold(at), 0)) look_at_free(at);
  reinterpret_cast<Delete>(real_operators[kIndex])(at, a, b);
}

#define ASSAY_NEW(name, index) \
  { name, reinterpret_cast<void*>(hook_new<index>), &real_operators[index] }
#define ASSAY_DELETE(name, index) \
  { name, reinterpret_cast<void*>(hook_delete<index>), &real_operators[index] }
const Hook kOperators[] = {
    ASSAY_NEW("_Znwm", 0),
    ASSAY_NEW("_Znam", 1),
    ASSAY_NEW("_ZnwmRKSt9nothrow_t", 2),
    ASSAY_NEW("_ZnamRKSt9nothrow_t", 3),
    ASSAY_NEW("_ZnwmSt11align_val_t", 4),
    ASSAY_NEW("_ZnamSt11align_val_t", 5),
    ASSAY_NEW("_ZnwmSt11align_val_tRKSt9nothrow_t", 6),
    ASSAY_NEW("_ZnamSt11align_val_tRKSt9nothrow_t", 7),
    ASSAY_DELETE("_ZdlPv", 8),
    ASSAY_DELETE("_ZdaPv", 9),
    ASSAY_DELETE("_ZdlPvm", 10),
    ASSAY_DELETE("_ZdaPvm", 11),
    ASSAY_DELETE("_ZdlPvSt11align_val_t", 12),
    ASSAY_DELETE("_ZdaPvSt11align_val_t", 13),
    ASSAY_DELETE("_ZdlPvmSt11align_val_t", 14),
    ASSAY_DELETE("_ZdaPvmSt11align_val_t", 15),
    ASSAY_DELETE("_ZdlPvRKSt9nothrow_t", 16),
    ASSAY_DELETE("_ZdaPvRKSt9nothrow_t", 17),
    ASSAY_DELETE("_ZdlPvSt11align_val_tRKSt9nothrow_t", 18),
    ASSAY_DELETE("_ZdaPvSt11align_val_tRKSt9nothrow_t", 19),
};

}  // namespace

HookList find_operator_hooks() {
  Definition allocator = find_definition("malloc", is_interposed() ? own_code() : nullptr);
  Definition operators = find_definition("_Znwm");
  if (!operators.at || operators.object != allocator.object) return {kOperators, 0};
  for (const Hook& hook : kOperators) {
    // Each form must belong to the allocator: a program may replace one form and not another.
    Definition found = find_definition(hook.name);
    *hook.real = found.object == allocator.object ? found.at : nullptr;
  }
  return {kOperators, kNews + kDeletes};
}

}  // namespace assay::inject
