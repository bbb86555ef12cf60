#include "inject/preload/hooks/loaded_object.h"

#include <cstring>

#include <elf.h>

namespace assay::inject {

namespace {

constexpr uintptr_t kPageBytes = 4096;

uint32_t gnu_hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

void widen(AddressRange& range, uintptr_t begin, uintptr_t end) {
  if (range.end == 0) range.begin = begin;
  range.end = end;  // program headers come in ascending order
}

}  // namespace

LoadedObject::LoadedObject(const dl_phdr_info& info) : base_(info.dlpi_addr) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    uintptr_t begin = base_ + header.p_vaddr, end = begin + header.p_memsz;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (header.p_type == PT_GNU_RELRO)  // rounded as the dynamic linker does
      relro_ = {begin & ~(kPageBytes - 1), end & ~(kPageBytes - 1)};
    if (header.p_type != PT_LOAD) continue;
    widen(all_, begin, end);
    if (header.p_flags & PF_X) widen(code_, begin, end);
    if (header.p_flags & PF_W) widen(writable_, begin, end);
  }
  if (dynamic && holds(dynamic)) read_dynamic(dynamic);
}

void LoadedObject::read_dynamic(const ElfW(Dyn) * entry) {
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
      case DT_GNU_HASH:
        gnu_hash_ = reinterpret_cast<const uint32_t*>(address(value));
        break;
      case DT_HASH:
        old_hash_ = reinterpret_cast<const uint32_t*>(address(value));
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
  auto is_inside = [&](const void* at) { return !at || holds(at); };
  bool is_sound = symbols_ && names_ && holds(symbols_) && holds(names_) && is_inside(plt_) &&
                  is_inside(relocations_) && is_inside(gnu_hash_) && is_inside(old_hash_) &&
                  is_rela;
  if (!is_sound) symbols_ = nullptr;
}

bool LoadedObject::is_function(const ElfW(Sym) & symbol, const char* name) const {
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
         ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_name < names_bytes_ &&
         std::strcmp(names_ + symbol.st_name, name) == 0;
}

const ElfW(Sym) * LoadedObject::find_by_gnu_hash(const char* name) const {
  uint32_t buckets = gnu_hash_[0], first = gnu_hash_[1], bloom_words = gnu_hash_[2];
  const uint32_t* bucket = gnu_hash_ + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chain = bucket + buckets;
  if (buckets == 0) return nullptr;
  uint32_t hash = gnu_hash_of(name), index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    uint32_t other = chain[index - first];
    if ((other | 1) == (hash | 1) && is_function(symbols_[index], name)) return &symbols_[index];
    if (other & 1) return nullptr;
  }
}

const ElfW(Sym) * LoadedObject::find_function(const char* name) const {
  if (!symbols_) return nullptr;
  if (gnu_hash_) return find_by_gnu_hash(name);
  for (uint32_t i = 1; old_hash_ && i < old_hash_[1]; ++i) {
    if (is_function(symbols_[i], name)) return &symbols_[i];
  }
  return nullptr;
}

Definition find_definition(const char* name, const void* after) {
  struct Search {
    const char* name;
    const void* after;
    bool is_program = true;
    Definition found;
  } search{name, after, true, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& wanted = *static_cast<Search*>(data);
        bool is_program = wanted.is_program;
        wanted.is_program = false;
        LoadedObject object(*info);
        if (wanted.after) {
          if (object.holds(wanted.after)) wanted.after = nullptr;
          return 0;
        }
        const ElfW(Sym)* symbol = object.find_function(wanted.name);
        if (!symbol) return 0;
        uintptr_t at = object.address_of(*symbol);
        wanted.found = {reinterpret_cast<void*>(at), symbol->st_size, info->dlpi_addr, is_program};
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace assay::inject
