#include "inject/preload/hooks/slot_patcher.h"

#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inject/core/syscalls.h"
#include "inject/preload/hooks/loaded_object.h"

namespace assay::inject {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#elif defined(__aarch64__)
constexpr uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64};
#endif
constexpr uint32_t kLazyType = kSlotTypes[0];

// Only objects that are fully relocated are known there; before, their pages still belong to the
// loader.
bool is_relocated(const dl_phdr_info& info) {
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_LOAD) continue;
    dl_find_object found;
    return _dl_find_object(reinterpret_cast<void*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr),
                           &found) == 0;
  }
  return false;
}

bool protect(AddressRange pages, int protection) {
  return !is_error(raw_syscall(SYS_mprotect, static_cast<long>(pages.begin),
                               static_cast<long>(pages.end - pages.begin), protection));
}

struct Pass {
  Pass(std::span<const HookList> all, bool patching) : lists(all), is_patching(patching) {
    for (const HookList& hooks : lists) {
      for (size_t i = 0; i < hooks.count; ++i) {
        const Hook& hook = hooks.begin[i];
        first_letters[initial(hook.name)] = true;
        sought |= trace_of(reinterpret_cast<uintptr_t>(is_patching ? *hook.real : hook.function));
      }
    }
  }
  // One bit of 64, the same for equal pointers.
  static uint64_t trace_of(uintptr_t pointer) { return uint64_t{1} << (pointer >> 4 & 63); }
  static unsigned char initial(const char* name) { return static_cast<unsigned char>(*name); }

  // Large programs have a hundred thousand names: the first letter rules out most of them.
  const Hook* hook_named(const char* name) const {
    if (!first_letters[initial(name)]) return nullptr;
    for (const HookList& hooks : lists) {
      for (size_t i = 0; i < hooks.count; ++i) {
        if (std::strcmp(hooks.begin[i].name, name) == 0) return &hooks.begin[i];
      }
    }
    return nullptr;
  }
  // By the slot's content: possibly one of the functions that are sought, or not bound yet.
  bool may_matter(const LoadedObject& object, uint32_t type, uintptr_t now) const {
    bool is_slot = type == kSlotTypes[0] || type == kSlotTypes[1] || type == kSlotTypes[2];
    bool may_be_lazy = is_patching && type == kLazyType && object.is_code(now);
    return is_slot && (may_be_lazy || (sought & trace_of(now)) != 0);
  }
  bool are_held_by(const LoadedObject& object) const {
    for (const HookList& hooks : lists) {
      if (hooks.count > 0) return object.holds(hooks.begin[0].function);
    }
    return false;
  }

  std::span<const HookList> lists;
  bool is_patching;
  size_t changed = 0;
  uint64_t sought = 0;  // bits of the pointers that are sought
  bool first_letters[256] = {};
};

// The new content of the slot; 0: it stays unchanged.
uintptr_t replacement(const Pass& pass, const LoadedObject& object, const Hook& hook,
                      bool may_be_lazy, uintptr_t now) {
  uintptr_t ours = reinterpret_cast<uintptr_t>(hook.function),
            theirs = reinterpret_cast<uintptr_t>(*hook.real);
  if (!pass.is_patching) return now == ours ? theirs : 0;
  // Not bound yet: it leads back into the object's own stub, and would be bound to `theirs`.
  bool is_lazy = may_be_lazy && object.is_code(now) && !object.is_code(theirs);
  return now == theirs || is_lazy ? ours : 0;
}

int visit_object(dl_phdr_info* info, size_t, void* data) {
  Pass& pass = *static_cast<Pass*>(data);
  if (!is_relocated(*info)) return 0;
  LoadedObject object(*info);
  if (pass.are_held_by(object)) return 0;  // our own slots lead to the real ones
  bool is_open = false;
  auto held = [](uintptr_t slot) {
    return __atomic_load_n(reinterpret_cast<uintptr_t*>(slot), __ATOMIC_RELAXED);
  };
  auto may_matter = [&](uint32_t type, uintptr_t slot) {
    return pass.may_matter(object, type, held(slot));
  };
  auto change = [&](const char* name, uint32_t type, uintptr_t slot, bool is_elsewhere) {
    const Hook* hook = pass.hook_named(name);
    if (!hook || !*hook->real) return;
    // An object with a malloc of its own may be bound to that: code of its own is then no stub.
    bool may_be_lazy = type == kLazyType && is_elsewhere;
    uintptr_t wanted = replacement(pass, object, *hook, may_be_lazy, held(slot));
    if (wanted == 0) return;
    if (object.relro().holds(slot) && !is_open) {
      is_open = protect(object.relro(), PROT_READ | PROT_WRITE);
      if (!is_open) return;  // the kernel refuses: leave it
    }
    __atomic_store_n(reinterpret_cast<uintptr_t*>(slot), wanted, __ATOMIC_RELEASE);
    ++pass.changed;
  };
  object.visit_slots(may_matter, change);
  if (is_open) protect(object.relro(), PROT_READ);
  return 0;
}

}  // namespace

size_t patch_slots(std::span<const HookList> lists) {
  Pass pass(lists, true);
  dl_iterate_phdr(visit_object, &pass);
  return pass.changed;
}

size_t restore_slots(std::span<const HookList> lists) {
  Pass pass(lists, false);
  dl_iterate_phdr(visit_object, &pass);
  return pass.changed;
}

}  // namespace assay::inject
