// LoadedObject: one object of the running program, as its program headers and dynamic section
// describe it.
//
// Valid inside the dl_iterate_phdr callback that it was made in. Reads only memory that the object
// has mapped; allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include <link.h>

namespace assay::inject {

struct AddressRange {
  uintptr_t begin = 0, end = 0;
  bool holds(uintptr_t at) const { return at >= begin && at < end; }
};

class LoadedObject {
 public:
  explicit LoadedObject(const dl_phdr_info& info);

  bool holds(const void* at) const { return all_.holds(reinterpret_cast<uintptr_t>(at)); }
  bool is_code(uintptr_t at) const { return code_.holds(at); }
  // Whether a pointer may be stored there.
  bool is_writable(uintptr_t slot) const {
    return slot % sizeof(void*) == 0 && slot >= writable_.begin &&
           slot + sizeof(void*) <= writable_.end;
  }
  // Pages that are read-only once relocation is done.
  AddressRange relro() const { return relro_; }

  // The function of that name that this object defines; null: none.
  const ElfW(Sym) * find_function(const char* name) const;
  uintptr_t address_of(const ElfW(Sym) & symbol) const { return base_ + symbol.st_value; }

  // Calls each(name, type, slot address, is_elsewhere) for every relocation without addend by a
  // named symbol; `is_elsewhere`: this object does not define the symbol itself. Only where
  // may_matter(type, slot address) says so: names lie far apart, and looking at all of them takes
  // most of the time.
  template <class MayMatter, class Each>
  void visit_slots(MayMatter may_matter, Each each) const {
    if (!symbols_) return;
    visit_table(plt_, plt_bytes_, may_matter, each);
    visit_table(relocations_, relocation_bytes_, may_matter, each);
  }

 private:
  void read_dynamic(const ElfW(Dyn) * entry);
  uintptr_t address(uintptr_t value) const { return value < base_ ? base_ + value : value; }
  bool is_function(const ElfW(Sym) & symbol, const char* name) const;
  const ElfW(Sym) * find_by_gnu_hash(const char* name) const;

  template <class MayMatter, class Each>
  void visit_table(const ElfW(Rela) * table, size_t bytes, MayMatter& may_matter,
                   Each& each) const {
    if (!table) return;
    for (size_t i = 0; i < bytes / sizeof *table; ++i) {
      uint32_t symbol = ELF64_R_SYM(table[i].r_info);
      auto type = static_cast<uint32_t>(ELF64_R_TYPE(table[i].r_info));
      uintptr_t slot = base_ + table[i].r_offset;
      if (symbol == 0 || table[i].r_addend != 0 || !is_writable(slot) || !may_matter(type, slot))
        continue;
      const ElfW(Sym)& named = symbols_[symbol];
      if (named.st_name < names_bytes_)
        each(names_ + named.st_name, type, slot, named.st_shndx == SHN_UNDEF);
    }
  }

  uintptr_t base_;
  AddressRange all_, code_, writable_, relro_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const uint32_t *gnu_hash_ = nullptr, *old_hash_ = nullptr;
  size_t names_bytes_ = 0, plt_bytes_ = 0, relocation_bytes_ = 0;
  const ElfW(Rela) * plt_ = nullptr;
  const ElfW(Rela) * relocations_ = nullptr;
};

// The first definition of a function in the program's search order.
struct Definition {
  void* at = nullptr;  // null: there is none
  size_t bytes = 0;
  uintptr_t object = 0;        // identifies the object
  bool is_in_program = false;  // in the main program itself
};

// Unlike dlsym it finds the function itself, never a non-PIE program's stub for it, allocates
// nothing and sets no error. With `after`, only objects behind the one that holds that address are
// searched.
Definition find_definition(const char* name, const void* after = nullptr);

}  // namespace assay::inject
