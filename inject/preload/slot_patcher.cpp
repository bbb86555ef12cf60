#include "inject/preload/slot_patcher.h"

#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inject/core/syscalls.h"
#include "inject/preload/loaded_object.h"

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
  Pass(HookList all, bool patching) : hooks(all), is_patching(patching) {
    for (size_t i = 0; i < all.count; ++i) first_letters[initial(all.begin[i].name)] = true;
  }
  static unsigned char initial(const char* name) { return static_cast<unsigned char>(*name); }

  // Large programs have a hundred thousand names: most are told apart by their first letter.
  const Hook* hook_named(const char* name) const {
    if (!first_letters[initial(name)]) return nullptr;
    for (size_t i = 0; i < hooks.count; ++i) {
      if (std::strcmp(hooks.begin[i].name, name) == 0) return &hooks.begin[i];
    }
    return nullptr;
  }

  HookList hooks;
  bool is_patching;
  size_t changed = 0;
  bool first_letters[256] = {};
};

// What the slot is to hold; 0: it stays as it is.
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
  if (object.holds(pass.hooks.begin[0].function)) return 0;  // our own slots lead to the real ones
  bool is_open = false;
  object.visit_slots([&](const char* name, uint32_t type, uintptr_t slot, bool is_elsewhere) {
    bool is_slot = type == kSlotTypes[0] || type == kSlotTypes[1] || type == kSlotTypes[2];
    const Hook* hook = is_slot ? pass.hook_named(name) : nullptr;
    if (!hook || !*hook->real) return;
    auto* at = reinterpret_cast<uintptr_t*>(slot);
    // An object with a malloc of its own may be bound to that: code of its own is then no stub.
    bool may_be_lazy = type == kLazyType && is_elsewhere;
    uintptr_t wanted =
        replacement(pass, object, *hook, may_be_lazy, __atomic_load_n(at, __ATOMIC_RELAXED));
    if (wanted == 0) return;
    if (object.relro().holds(slot) && !is_open) {
      is_open = protect(object.relro(), PROT_READ | PROT_WRITE);
      if (!is_open) return;  // the kernel says no: leave it
    }
    __atomic_store_n(at, wanted, __ATOMIC_RELEASE);
    ++pass.changed;
  });
  if (is_open) protect(object.relro(), PROT_READ);
  return 0;
}

}  // namespace

size_t patch_slots(HookList hooks) {
  Pass pass(hooks, true);
  dl_iterate_phdr(visit_object, &pass);
  return pass.changed;
}

size_t restore_slots(HookList hooks) {
  Pass pass(hooks, false);
  dl_iterate_phdr(visit_object, &pass);
  return pass.changed;
}

}  // namespace assay::inject
