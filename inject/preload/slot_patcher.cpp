#include "inject/preload/slot_patcher.h"

#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inject/core/syscalls.h"

namespace assay::inject {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#elif defined(__aarch64__)
constexpr uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64};
#endif
constexpr uint32_t kLazyType = kSlotTypes[0];
constexpr uintptr_t kPageBytes = 4096;

struct Range {
  uintptr_t begin = 0, end = 0;
  bool holds(uintptr_t at) const { return at >= begin && at < end; }
};

// One loaded object, as its program headers and dynamic section describe it.
class Object {
 public:
  explicit Object(const dl_phdr_info& info) : base_(info.dlpi_addr) {
    const ElfW(Dyn)* dynamic = nullptr;
    for (size_t i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info.dlpi_phdr[i];
      uintptr_t begin = base_ + header.p_vaddr, end = begin + header.p_memsz;
      if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
      if (header.p_type == PT_GNU_RELRO)  // rounded as the dynamic linker does
        relro_ = {begin & ~(kPageBytes - 1), end & ~(kPageBytes - 1)};
      if (header.p_type != PT_LOAD) continue;
      if (all_.end == 0) all_.begin = begin;
      all_.end = end;
      if (header.p_flags & PF_X) code_ = {code_.end ? code_.begin : begin, end};
      if ((header.p_flags & PF_W) && !writable_.end)
        writable_ = {begin, end};
      else if (header.p_flags & PF_W)
        writable_.end = end;
    }
    if (dynamic && is_relocated()) read_dynamic(dynamic);
  }

  bool holds(const void* at) const { return all_.holds(reinterpret_cast<uintptr_t>(at)); }

  // Calls each(name, type, slot) for every slot of a named symbol.
  template <class Each>
  void visit(Each each) const {
    if (!symbols_ || !names_) return;
    visit_table(plt_, plt_bytes_, each);
    visit_table(relocations_, relocation_bytes_, each);
  }

  bool is_code(uintptr_t at) const { return code_.holds(at); }
  bool is_writable(uintptr_t slot) const {
    return slot % sizeof(void*) == 0 && slot >= writable_.begin &&
           slot + sizeof(void*) <= writable_.end;
  }
  bool is_read_only_now(uintptr_t slot) const { return relro_.holds(slot); }
  bool protect(int protection) const {
    return relro_.end == relro_.begin ||
           !is_error(raw_syscall(SYS_mprotect, static_cast<long>(relro_.begin),
                                 static_cast<long>(relro_.end - relro_.begin), protection));
  }

 private:
  // Only objects that are fully relocated are known there; before, their pages still belong to the
  // loader.
  bool is_relocated() const {
    dl_find_object found;
    return code_.end && _dl_find_object(reinterpret_cast<void*>(code_.begin), &found) == 0;
  }

  uintptr_t address(uintptr_t value) const { return value < base_ ? base_ + value : value; }

  void read_dynamic(const ElfW(Dyn) * entry) {
    bool is_rela = true;
    for (; entry->d_tag != DT_NULL; ++entry) {
      uintptr_t value = entry->d_un.d_val;
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = reinterpret_cast<const ElfW(Sym)*>(address(value));
          break;
        case DT_STRTAB:
          names_ = reinterpret_cast<const char*>(address(value));
          break;
        case DT_STRSZ:
          names_bytes_ = value;
          break;
        case DT_JMPREL:
          plt_ = reinterpret_cast<const ElfW(Rela)*>(address(value));
          break;
        case DT_PLTRELSZ:
          plt_bytes_ = value;
          break;
        case DT_PLTREL:
          is_rela = value == DT_RELA;
          break;
        case DT_RELA:
          relocations_ = reinterpret_cast<const ElfW(Rela)*>(address(value));
          break;
        case DT_RELASZ:
          relocation_bytes_ = value;
          break;
        default:
          break;
      }
    }
    bool inside = holds(symbols_) && holds(names_) && (!plt_ || holds(plt_)) &&
                  (!relocations_ || holds(relocations_));
    if (!inside || !is_rela) symbols_ = nullptr;
  }

  template <class Each>
  void visit_table(const ElfW(Rela) * table, size_t bytes, Each& each) const {
    if (!table) return;
    for (size_t i = 0; i < bytes / sizeof *table; ++i) {
      uint32_t type = ELF64_R_TYPE(table[i].r_info), symbol = ELF64_R_SYM(table[i].r_info);
      bool wanted = symbol != 0 && table[i].r_addend == 0 &&
                    (type == kSlotTypes[0] || type == kSlotTypes[1] || type == kSlotTypes[2]);
      if (!wanted || symbols_[symbol].st_name >= names_bytes_) continue;
      uintptr_t slot = base_ + table[i].r_offset;
      if (is_writable(slot)) each(names_ + symbols_[symbol].st_name, type, slot);
    }
  }

  uintptr_t base_;
  Range all_, code_, writable_, relro_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  size_t names_bytes_ = 0, plt_bytes_ = 0, relocation_bytes_ = 0;
  const ElfW(Rela) * plt_ = nullptr;
  const ElfW(Rela) * relocations_ = nullptr;
};

struct Pass {
  HookList hooks;
  bool is_patching;
  size_t changed = 0;
};

const Hook* hook_named(HookList hooks, const char* name) {
  for (size_t i = 0; i < hooks.count; ++i) {
    if (std::strcmp(hooks.begin[i].name, name) == 0) return &hooks.begin[i];
  }
  return nullptr;
}

// What the slot is to hold; 0: it stays as it is.
uintptr_t replacement(const Pass& pass, const Object& object, const Hook& hook, uint32_t type,
                      uintptr_t now) {
  uintptr_t ours = reinterpret_cast<uintptr_t>(hook.function),
            theirs = reinterpret_cast<uintptr_t>(*hook.real);
  if (!pass.is_patching) return now == ours ? theirs : 0;
  // Not bound yet: it leads back into the object's own stub, and would be bound to `theirs`.
  bool is_lazy = type == kLazyType && object.is_code(now) && !object.is_code(theirs);
  return now == theirs || is_lazy ? ours : 0;
}

int visit_object(dl_phdr_info* info, size_t, void* data) {
  Pass& pass = *static_cast<Pass*>(data);
  Object object(*info);
  if (object.holds(pass.hooks.begin[0].function)) return 0;  // our own slots lead to the real ones
  bool is_open = false;
  object.visit([&](const char* name, uint32_t type, uintptr_t slot) {
    const Hook* hook = hook_named(pass.hooks, name);
    if (!hook || !*hook->real) return;
    auto* at = reinterpret_cast<uintptr_t*>(slot);
    uintptr_t wanted =
        replacement(pass, object, *hook, type, __atomic_load_n(at, __ATOMIC_RELAXED));
    if (wanted == 0) return;
    if (object.is_read_only_now(slot) && !is_open) is_open = object.protect(PROT_READ | PROT_WRITE);
    if (object.is_read_only_now(slot) && !is_open) return;  // the kernel says no: leave it
    __atomic_store_n(at, wanted, __ATOMIC_RELEASE);
    ++pass.changed;
  });
  if (is_open) object.protect(PROT_READ);
  return 0;
}

}  // namespace

size_t patch_slots(HookList hooks) {
  Pass pass{hooks, true};
  dl_iterate_phdr(visit_object, &pass);
  return pass.changed;
}

size_t restore_slots(HookList hooks) {
  Pass pass{hooks, false};
  dl_iterate_phdr(visit_object, &pass);
  return pass.changed;
}

}  // namespace assay::inject
