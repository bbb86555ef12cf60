#include "os/process/binary_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include "base/unique_fd.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr size_t kMaxSections = 100'000;
constexpr size_t kMaxTextBytes = 4'096;  // of a producer string that is kept

using ElfHandle = std::unique_ptr<Elf, int (*)(Elf*)>;
using DwarfHandle = std::unique_ptr<Dwarf, int (*)(Dwarf*)>;

struct Sections {
  bool has_interpreter = false, has_pie_flag = false;
  uint64_t inflated_bytes = 0;  // what compressed debug sections claim to become
  Elf_Scn* symtab = nullptr;
  Elf_Scn* dynsym = nullptr;
  Elf_Scn* dynamic = nullptr;
};

std::string hex(const uint8_t* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string build_id_of(Elf* elf) {
  constexpr ssize_t kMaxBuildIdBytes = 64;
  const void* bytes = nullptr;
  ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  if (size <= 0 || size > kMaxBuildIdBytes || bytes == nullptr) return "";
  return hex(static_cast<const uint8_t*>(bytes), static_cast<size_t>(size));
}

Sections read_sections(Elf* elf, BinaryFacts& facts) {
  Sections sections;
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return sections;
  Elf_Scn* section = nullptr;
  for (size_t count = 0; count < kMaxSections; ++count) {
    section = elf_nextscn(elf, section);
    if (section == nullptr) break;
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    // objcopy --only-keep-debug leaves sections without their content.
    if (header.sh_type == SHT_NOBITS) continue;
    const char* raw_name = elf_strptr(elf, names, header.sh_name);
    std::string_view name = raw_name == nullptr ? "" : raw_name;
    if (header.sh_type == SHT_SYMTAB) sections.symtab = section;
    if (header.sh_type == SHT_DYNSYM) sections.dynsym = section;
    if (header.sh_type == SHT_DYNAMIC) sections.dynamic = section;
    if (name == ".debug_info" || name == ".zdebug_info") facts.has_debug_info = true;
    if (name == ".gnu_debuglink") facts.has_debug_link = true;
    if (!name.starts_with(".debug_") && !name.starts_with(".zdebug_")) continue;
    GElf_Chdr compressed;
    if ((header.sh_flags & SHF_COMPRESSED) != 0 && gelf_getchdr(section, &compressed) != nullptr) {
      sections.inflated_bytes += std::min(compressed.ch_size, kMaxInflatedBytes + 1);
    } else if (name.starts_with(".zdebug_")) {
      sections.inflated_bytes += std::min(header.sh_size * 8, kMaxInflatedBytes + 1);
    }
  }
  facts.has_symtab = sections.symtab != nullptr;
  facts.has_dynsym = sections.dynsym != nullptr;
  return sections;
}

void note_sanitizer(std::string_view name, std::set<std::string>& found) {
  constexpr std::array<std::pair<std::string_view, const char*>, 12> kSigns{{
      {"__asan_init", "address"},
      {"__hwasan_init", "hwaddress"},
      {"__tsan_init", "thread"},
      {"__msan_init", "memory"},
      {"__lsan_init", "leak"},
      {"__ubsan_handle_", "undefined"},
      {"libasan.so", "address"},
      {"libhwasan.so", "hwaddress"},
      {"libtsan.so", "thread"},
      {"liblsan.so", "leak"},
      {"libubsan.so", "undefined"},
      {"libclang_rt.asan", "address"},
  }};
  for (const auto& [prefix, sanitizer] : kSigns) {
    if (name.starts_with(prefix)) found.insert(sanitizer);
  }
}

void read_symbols(Elf* elf, Elf_Scn* section, std::set<std::string>& sanitizers,
                  bool& debug_containers) {
  GElf_Shdr header;
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return;
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  size_t count = std::min<uint64_t>(header.sh_size / header.sh_entsize, kMaxSymbols);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr || name[0] != '_') continue;
    // Allocators and frameworks refer to a sanitizer weakly, in case there is one.
    bool weak_reference = symbol.st_shndx == SHN_UNDEF && GELF_ST_BIND(symbol.st_info) == STB_WEAK;
    if (weak_reference) continue;
    std::string_view text = name;
    if (text.starts_with("__")) note_sanitizer(text, sanitizers);
    if (text.starts_with("_ZN11__gnu_debug") || text.starts_with("_ZNK11__gnu_debug")) {
      debug_containers = true;
    }
  }
}

void read_dynamic(Elf* elf, Sections& sections, std::set<std::string>& sanitizers) {
  constexpr size_t kMaxEntries = 10'000;
  GElf_Shdr header;
  if (sections.dynamic == nullptr || gelf_getshdr(sections.dynamic, &header) == nullptr) return;
  Elf_Data* data = elf_getdata(sections.dynamic, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  size_t count = std::min<uint64_t>(header.sh_size / header.sh_entsize, kMaxEntries);
  for (size_t i = 0; i < count; ++i) {
    GElf_Dyn entry;
    if (gelf_getdyn(data, static_cast<int>(i), &entry) == nullptr || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_FLAGS_1) sections.has_pie_flag = (entry.d_un.d_val & DF_1_PIE) != 0;
    if (entry.d_tag != DT_NEEDED) continue;
    const char* name = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
    if (name != nullptr) note_sanitizer(name, sanitizers);
  }
}

Linkage linkage_of(Elf* elf, Sections& sections) {
  GElf_Ehdr header;
  if (gelf_getehdr(elf, &header) == nullptr) return Linkage::unknown;
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return Linkage::unknown;
  for (size_t i = 0; i < std::min(count, kMaxSections); ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type == PT_INTERP) sections.has_interpreter = true;
  }
  if (header.e_type == ET_EXEC) {
    return sections.has_interpreter ? Linkage::position_dependent : Linkage::static_exe;
  }
  if (header.e_type != ET_DYN) return Linkage::unknown;
  if (sections.has_interpreter) return Linkage::pie;
  return sections.has_pie_flag ? Linkage::static_pie : Linkage::shared;
}

// What the units say, counted: the compiler most of them name, and its most common flags.
class ProducerVotes {
 public:
  void add(const Producer& producer) {
    ++units_;
    ++compilers_[producer.compiler];
    ++flags_[{producer.compiler, producer.flags}];
    ++optimisation_[static_cast<size_t>(producer.optimisation)];
    ++frame_pointers_[static_cast<size_t>(producer.frame_pointers)];
  }
  void tell(BinaryFacts& facts) const {
    facts.units_read = units_;
    facts.units_optimised = optimisation_[static_cast<size_t>(Optimisation::optimised)];
    facts.units_debug = optimisation_[static_cast<size_t>(Optimisation::debug)];
    if (facts.units_optimised + facts.units_debug > 0) {
      facts.optimisation =
          facts.units_debug > facts.units_optimised ? Optimisation::debug : Optimisation::optimised;
    }
    uint32_t kept = frame_pointers_[static_cast<size_t>(FramePointers::kept)];
    uint32_t omitted = frame_pointers_[static_cast<size_t>(FramePointers::omitted)];
    if (kept + omitted > 0) {
      facts.frame_pointers = kept > omitted ? FramePointers::kept : FramePointers::omitted;
    }
    uint32_t most = 0;
    for (const auto& [compiler, count] : compilers_) {
      if (count > most) facts.compiler = compiler, most = count;
    }
    most = 0;
    for (const auto& [key, count] : flags_) {
      if (key.first == facts.compiler && count > most) facts.flags = key.second, most = count;
    }
  }

 private:
  uint32_t units_ = 0;
  std::map<std::string, uint32_t> compilers_;
  std::map<std::pair<std::string, std::string>, uint32_t> flags_;
  std::array<uint32_t, 3> optimisation_{}, frame_pointers_{};
};

void read_producers(Elf* elf, BinaryFacts& facts) {
  DwarfHandle dwarf(dwarf_begin_elf(elf, DWARF_C_READ, nullptr), dwarf_end);
  if (!dwarf) {
    facts.limit = "the debug information cannot be read";
    return;
  }
  ProducerVotes votes;
  Dwarf_CU* unit = nullptr;
  uint32_t seen = 0;
  Dwarf_Die die;
  while (dwarf_get_units(dwarf.get(), unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
    if (++seen > kMaxUnits) {
      facts.limit = fmt::format("the first {} compilation units were read", kMaxUnits);
      break;
    }
    Dwarf_Attribute attribute;
    if (dwarf_attr(&die, DW_AT_producer, &attribute) == nullptr) continue;
    const char* text = dwarf_formstring(&attribute);
    if (text == nullptr) continue;
    Producer producer = parse_producer(text);
    if (!producer.assembler) votes.add(producer);
  }
  votes.tell(facts);
}

Result<std::string> build_id_of_file(const std::string& path, struct stat& info) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return fail_errno("cannot open {}", path);
  if (!S_ISREG(info.st_mode)) return fail("{} is no regular file", path);
  elf_version(EV_CURRENT);
  ElfHandle elf(elf_begin(fd.get(), ELF_C_READ, nullptr), elf_end);
  return elf ? build_id_of(elf.get()) : "";
}

}  // namespace

// Flags start at the first word with a dash: the compiler's own name has none.
Producer parse_producer(std::string_view text) {
  text = text.substr(0, kMaxTextBytes);
  Producer producer;
  size_t flags_at = text.starts_with('-') ? 0 : std::min(text.find(" -"), text.size());
  producer.compiler = std::string(trim(text.substr(0, flags_at)));
  producer.flags = std::string(trim(text.substr(flags_at)));
  producer.assembler = text.starts_with("GNU AS") || text.find("NASM") != text.npos ||
                       text.find("yasm") != text.npos;
  if (text.starts_with("Go cmd/compile")) {  // optimises unless it was told -N
    auto words = split_words(text);
    bool plain = std::ranges::find(words, "-N") != words.end();
    producer.optimisation = plain ? Optimisation::debug : Optimisation::optimised;
    producer.frame_pointers = FramePointers::kept;
    return producer;
  }
  if (producer.flags.empty() || producer.assembler) return producer;

  producer.optimisation = Optimisation::debug;  // no -O means -O0
  for (std::string_view word :
       split_words(producer.flags)) {  // the last one wins, as it does for gcc
    if (word.starts_with("-O")) {
      bool debug = word == "-O0" || word == "-Og";
      producer.optimisation = debug ? Optimisation::debug : Optimisation::optimised;
    }
    if (word == "-fno-omit-frame-pointer") producer.frame_pointers = FramePointers::kept;
    if (word == "-fomit-frame-pointer") producer.frame_pointers = FramePointers::omitted;
  }
  if (producer.frame_pointers == FramePointers::unknown && text.starts_with("GNU ")) {
    bool optimised = producer.optimisation == Optimisation::optimised ||
                     producer.flags.find("-Og") != std::string::npos;
    producer.frame_pointers = optimised ? FramePointers::omitted : FramePointers::kept;
  }
  return producer;
}

Result<BinaryFacts> read_binary_facts(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno("cannot look at the program file");
  if (!S_ISREG(info.st_mode)) return fail("the program is no regular file");
  elf_version(EV_CURRENT);
  // Mapped, not read: debug sections of hundreds of megabytes are touched only where they are
  // needed.
  ElfHandle elf(elf_begin(fd, ELF_C_READ_MMAP, nullptr), elf_end);
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return fail("the program is no ELF file");

  BinaryFacts facts;
  facts.build_id = build_id_of(elf.get());
  Sections sections = read_sections(elf.get(), facts);
  std::set<std::string> sanitizers;
  read_dynamic(elf.get(), sections, sanitizers);
  facts.linkage = linkage_of(elf.get(), sections);
  read_symbols(elf.get(), sections.dynsym, sanitizers, facts.debug_containers);
  read_symbols(elf.get(), sections.symtab, sanitizers, facts.debug_containers);
  facts.sanitizers.assign(sanitizers.begin(), sanitizers.end());
  if (!facts.has_debug_info) return facts;
  if (sections.inflated_bytes > kMaxInflatedBytes) {
    facts.limit = "the compressed debug information is too large to be read here";
  } else {
    read_producers(elf.get(), facts);
  }
  return facts;
}

Result<RunningImage> read_running_image(pid_t pid, const ProcFs& proc) {
  constexpr std::string_view kDeleted = " (deleted)";
  auto link = proc.exe(pid);
  if (!link) return std::unexpected(link.error());
  RunningImage image;
  image.path = *link;
  bool unlinked = image.path.ends_with(kDeleted);
  if (unlinked) image.path.resize(image.path.size() - kDeleted.size());

  struct stat running {
  }, on_disk{};
  auto running_id = build_id_of_file(fmt::format("{}/{}/exe", proc.root(), pid), running);
  if (!running_id) return std::unexpected(running_id.error());
  image.build_id = *running_id;
  // As the target sees it: its own root, which a container changes.
  auto disk_id =
      build_id_of_file(fmt::format("{}/{}/root{}", proc.root(), pid, image.path), on_disk);
  if (!disk_id) {
    image.deleted = unlinked || disk_id.error().code == ENOENT;
    return image;
  }
  image.file_build_id = *disk_id;
  bool same_file = running.st_dev == on_disk.st_dev && running.st_ino == on_disk.st_ino;
  bool comparable = !image.build_id.empty() && !image.file_build_id.empty();
  // Overlay file systems show one file under two inodes; where there are build ids they decide.
  image.replaced = comparable ? image.build_id != image.file_build_id : unlinked || !same_file;
  return image;
}

const char* linkage_name(Linkage linkage) {
  switch (linkage) {
    case Linkage::pie:
      return "dynamic, PIE";
    case Linkage::position_dependent:
      return "dynamic, not PIE";
    case Linkage::static_pie:
      return "static, PIE";
    case Linkage::static_exe:
      return "static";
    case Linkage::shared:
      return "shared object";
    case Linkage::unknown:
      break;
  }
  return "unknown";
}

const char* optimisation_name(Optimisation optimisation) {
  switch (optimisation) {
    case Optimisation::optimised:
      return "optimised";
    case Optimisation::debug:
      return "debug";
    case Optimisation::unknown:
      break;
  }
  return "unknown";
}

const char* frame_pointers_name(FramePointers frame_pointers) {
  switch (frame_pointers) {
    case FramePointers::kept:
      return "kept";
    case FramePointers::omitted:
      return "omitted";
    case FramePointers::unknown:
      break;
  }
  return "unknown";
}

}  // namespace assay::os
