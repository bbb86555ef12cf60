#include "inject/inproc/write/resolve_names.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "inject/inproc/write/elf_reader.h"

// The host's own demangler, where it has one: libassay contains no C++ runtime.
extern "C" char* __cxa_demangle(const char*, char*, size_t*, int*) __attribute__((weak));

namespace assay::inproc {
namespace {

constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxMangledBytes =
    1024;  // for longer names the runtime's demangler may take forever
constexpr uint64_t kMaxUnsizedDistance = 4096;  // hand-written assembly without sizes

struct Match {
  uint64_t value = 0;  // link-time address of the symbol
  uint64_t name_offset = 0;
  uint8_t rank = 0;  // 0 none, 1 unsized, 2 local, 3 weak, 4 global
};

struct Wanted {
  CodeAddress* addresses;
  uint64_t* link;  // their link-time addresses, ascending
  Match* matches;
  size_t count;
};

uint8_t rank_of(const Elf64_Sym& symbol) {
  if (symbol.st_size == 0) return 1;
  switch (ELF64_ST_BIND(symbol.st_info)) {
    case STB_LOCAL:
      return 2;
    case STB_WEAK:
      return 3;
    default:
      return 4;
  }
}

void offer(const Elf64_Sym& symbol, Wanted& wanted) {
  unsigned type = ELF64_ST_TYPE(symbol.st_info);
  bool function =
      type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && symbol.st_size == 0);
  if (!function || symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || symbol.st_name == 0)
    return;
  uint64_t* link_end = wanted.link + wanted.count;
  uint64_t* at = std::lower_bound(wanted.link, link_end, symbol.st_value);
  uint8_t rank = rank_of(symbol);
  uint64_t reach = rank == 1 ? kMaxUnsizedDistance : symbol.st_size;
  for (; at != link_end && *at - symbol.st_value < reach; ++at) {
    Match& match = wanted.matches[at - wanted.link];
    bool sized = rank > 1 && match.rank <= 1;
    bool nearer = (rank > 1) == (match.rank > 1) && symbol.st_value > match.value;
    bool better_name = symbol.st_value == match.value && rank > match.rank;
    if (match.rank == 0 || sized || nearer || better_name)
      match = {symbol.st_value, symbol.st_name, rank};
  }
}

void scan_symbols(const ElfReader& elf, const ElfReader::Symbols& table, Wanted& wanted) {
  Elf64_Sym chunk[256];
  for (uint64_t done = 0; done < table.count;) {
    uint64_t count = std::min<uint64_t>(table.count - done, 256);
    if (!elf.read(table.offset + done * sizeof(Elf64_Sym), chunk, count * sizeof(Elf64_Sym)))
      return;
    for (uint64_t i = 0; i < count; ++i) offer(chunk[i], wanted);
    done += count;
  }
}

const char* demangle(const char* name, Arena& arena) {
  if (std::strncmp(name, "_Z", 2) != 0 || __cxa_demangle == nullptr) return name;
  if (std::strlen(name) > kMaxMangledBytes) return name;
  int status = 0;
  char* text = __cxa_demangle(name, nullptr, nullptr, &status);
  if (text == nullptr) return name;
  const char* copy = arena.copy(text, std::strlen(text));
  std::free(text);
  return copy == nullptr ? name : copy;
}

void read_names(const ElfReader& elf, const ElfReader::Symbols& table, Wanted& wanted,
                Arena& arena) {
  char text[kMaxNameBytes];
  const CodeAddress* previous = nullptr;
  uint64_t previous_value = 0;
  for (size_t i = 0; i < wanted.count; ++i) {
    const Match& match = wanted.matches[i];
    CodeAddress& address = wanted.addresses[i];
    if (match.rank == 0 || match.name_offset >= table.names_bytes) continue;
    address.function_start = address.address - (wanted.link[i] - match.value);
    address.module->has_functions = true;
    if (previous != nullptr && previous_value == match.value) {
      address.name = previous->name;
      address.system_name = previous->system_name;
      continue;
    }
    size_t room = std::min<uint64_t>(sizeof text - 1, table.names_bytes - match.name_offset);
    size_t got = elf.read_some(table.names_offset + match.name_offset, text, room);
    text[got] = 0;
    // Full tables of libc say "send@@GLIBC_2.2.5".
    if (char* version = std::strchr(text, '@'); version != nullptr && version != text) *version = 0;
    address.system_name = arena.copy(text, std::strlen(text));
    if (address.system_name == nullptr) return;
    address.name = demangle(address.system_name, arena);
    previous = &address;
    previous_value = match.value;
  }
}

bool use_table(const ElfReader& elf, Wanted& wanted, Arena& arena, bool full_only) {
  ElfReader::Symbols table;
  if (!elf.symbols(table) || (full_only && !table.full)) return false;
  scan_symbols(elf, table, wanted);
  read_names(elf, table, wanted, arena);
  return table.full;
}

void resolve_module(CodeAddress* addresses, size_t count, Arena& arena) {
  const Module& module = *addresses[0].module;
  ElfReader elf;
  if (!elf.open(module)) return;
  Wanted wanted{addresses, arena.array<uint64_t>(count), arena.array<Match>(count), count};
  if (wanted.link == nullptr || wanted.matches == nullptr) return;
  for (size_t i = 0; i < count; ++i) {
    uint64_t file_offset = addresses[i].address - module.start + module.offset;
    if (!elf.link_address(file_offset, wanted.link[i])) return;
  }
  if (use_table(elf, wanted, arena, false) || module.build_id[0] == 0) return;
  // Only exported names there: the distribution's debug file, where it is installed, has the rest.
  char path[256];
  snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", module.build_id,
           module.build_id + 2);
  ElfReader debug;
  if (!debug.open_file(path)) return;
  Match* fresh = arena.array<Match>(count);
  if (fresh == nullptr) return;
  wanted.matches = fresh;
  use_table(debug, wanted, arena, true);
}

}  // namespace

size_t sort_addresses(CodeAddress* addresses, size_t count) {
  std::sort(addresses, addresses + count,
            [](const CodeAddress& a, const CodeAddress& b) { return a.address < b.address; });
  CodeAddress* last = std::unique(
      addresses, addresses + count,
      [](const CodeAddress& a, const CodeAddress& b) { return a.address == b.address; });
  return static_cast<size_t>(last - addresses);
}

void resolve_names(CodeAddress* addresses, size_t count, ModuleMap& modules, Arena& arena) {
  for (size_t i = 0; i < count; ++i) addresses[i].module = modules.find(addresses[i].address);
  for (size_t first = 0; first < count;) {
    size_t next = first + 1;
    while (next < count && addresses[next].module == addresses[first].module) ++next;
    if (addresses[first].module != nullptr) resolve_module(addresses + first, next - first, arena);
    first = next;
  }
}

const CodeAddress* find_address(const CodeAddress* addresses, size_t count, uintptr_t address) {
  const CodeAddress* at = std::lower_bound(
      addresses, addresses + count, address,
      [](const CodeAddress& entry, uintptr_t wanted) { return entry.address < wanted; });
  return at != addresses + count && at->address == address ? at : nullptr;
}

}  // namespace assay::inproc
