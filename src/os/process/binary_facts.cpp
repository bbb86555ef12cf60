#include "os/process/binary_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <elf.h>
#include <sys/stat.h>

#include "elf/elf_file.h"
#include "elf/unit_producers.h"
#include "os/process/binary_reader.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

using elf::ElfFile;

constexpr uint64_t kMaxTextBytes = 4'096;  // of a producer string that is kept
constexpr uint64_t kMaxNameBytes = 64;     // of a symbol: its beginning tells enough

struct Sections {
  bool has_interpreter = false, has_pie_flag = false;
  uint64_t inflated_bytes = 0;  // what compressed debug sections claim to become
  const elf::Section* symtab = nullptr;
  const elf::Section* dynsym = nullptr;
  const elf::Section* dynamic = nullptr;
};

// What a compressed section claims to become.
uint64_t inflated_bytes(ElfFile& file, const elf::Section& section) {
  uint64_t claimed = 0;
  if ((section.flags & SHF_COMPRESSED) != 0) {
    ByteReader in(file.source().view(section.offset, sizeof(Elf64_Chdr)));
    claimed = file.is_64_bit() ? in.fixed<Elf64_Chdr>().ch_size : in.fixed<Elf32_Chdr>().ch_size;
  } else if (section.name.starts_with(".zdebug_")) {
    claimed = section.size * 8;
  }
  return std::min(claimed, kMaxInflatedBytes + 1);
}

Sections read_sections(ElfFile& file, BinaryFacts& facts) {
  Sections sections;
  for (const elf::Section& section : file.sections()) {
    // objcopy --only-keep-debug leaves sections without their content.
    if (!section.has_bytes()) continue;
    if (section.type == SHT_SYMTAB) sections.symtab = &section;
    if (section.type == SHT_DYNSYM) sections.dynsym = &section;
    if (section.type == SHT_DYNAMIC) sections.dynamic = &section;
    std::string_view name = section.name;
    if (name == ".debug_info" || name == ".zdebug_info") facts.has_debug_info = true;
    if (name == ".gnu_debuglink") facts.has_debug_link = true;
    if (name.starts_with(".debug_") || name.starts_with(".zdebug_"))
      sections.inflated_bytes += inflated_bytes(file, section);
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

void read_symbols(ElfFile& file, const elf::Section* table, std::set<std::string>& sanitizers,
                  bool& debug_containers) {
  if (table == nullptr) return;
  file.for_each_symbol(
      *table, kMaxSymbols, [&](const Elf64_Sym& symbol, const elf::SectionBytes& names) {
        // Allocators and frameworks refer to a sanitizer weakly, in case there is one.
        bool weak_reference =
            symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_WEAK;
        if (weak_reference) return;
        std::string_view text = names.view(symbol.st_name, kMaxNameBytes);
        text = text.substr(0, text.find('\0'));
        if (text.starts_with("__")) note_sanitizer(text, sanitizers);
        if (text.starts_with("_ZN11__gnu_debug") || text.starts_with("_ZNK11__gnu_debug")) {
          debug_containers = true;
        }
      });
}

struct DynamicEntry {
  int64_t tag = DT_NULL;
  uint64_t value = 0;
};

DynamicEntry read_dynamic_entry(const ElfFile& file, ByteReader& in) {
  if (file.is_64_bit()) {
    auto entry = in.fixed<Elf64_Dyn>();
    return {entry.d_tag, entry.d_un.d_val};
  }
  auto entry = in.fixed<Elf32_Dyn>();
  return {entry.d_tag, entry.d_un.d_val};
}

void read_dynamic(ElfFile& file, Sections& sections, std::set<std::string>& sanitizers) {
  constexpr size_t kMaxEntries = 10'000;
  if (sections.dynamic == nullptr || sections.dynamic->link >= file.sections().size()) return;
  elf::SectionBytes names = file.bytes(file.sections()[sections.dynamic->link]);
  ByteReader in(file.bytes(*sections.dynamic).all());
  for (size_t i = 0; i < kMaxEntries; ++i) {
    DynamicEntry entry = read_dynamic_entry(file, in);
    if (!in.ok() || entry.tag == DT_NULL) break;
    if (entry.tag == DT_FLAGS_1) sections.has_pie_flag = (entry.value & DF_1_PIE) != 0;
    if (entry.tag == DT_NEEDED) note_sanitizer(names.text(entry.value), sanitizers);
  }
}

Linkage linkage_of(const ElfFile& file, Sections& sections) {
  for (const elf::Segment& segment : file.segments()) {
    if (segment.type == PT_INTERP) sections.has_interpreter = true;
  }
  if (file.type() == ET_EXEC) {
    return sections.has_interpreter ? Linkage::position_dependent : Linkage::static_exe;
  }
  if (file.type() != ET_DYN) return Linkage::unknown;
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

void read_producers(ElfFile& file, BinaryFacts& facts) {
  ProducerVotes votes;
  auto end = elf::for_each_producer(file, kMaxUnits, [&](std::string_view text) {
    Producer producer = parse_producer(text);
    if (!producer.assembler) votes.add(producer);
  });
  if (end == elf::ProducersEnd::unreadable) facts.limit = "the debug information cannot be read";
  if (end == elf::ProducersEnd::too_many)
    facts.limit = fmt::format("the first {} compilation units were read", kMaxUnits);
  if (!file.refusal().empty()) facts.limit = file.refusal();
  votes.tell(facts);
}

Result<std::string> build_id_of_file(Result<UniqueFd> fd, struct stat& info) {
  if (!fd) return std::unexpected(fd.error());
  if (::fstat(fd->get(), &info) != 0) return fail_errno("cannot look at the program file");
  return binary_reader().build_id(fd->get()).value_or("");
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
  auto opened = ElfFile::open(fd, elf::Classes::both);
  if (!opened) return fail("the program is no ELF file");
  ElfFile& file = **opened;

  BinaryFacts facts;
  facts.build_id = file.build_id();
  Sections sections = read_sections(file, facts);
  std::set<std::string> sanitizers;
  read_dynamic(file, sections, sanitizers);
  facts.linkage = linkage_of(file, sections);
  read_symbols(file, sections.dynsym, sanitizers, facts.debug_containers);
  read_symbols(file, sections.symtab, sanitizers, facts.debug_containers);
  facts.sanitizers.assign(sanitizers.begin(), sanitizers.end());
  if (!facts.has_debug_info) return facts;
  if (sections.inflated_bytes > kMaxInflatedBytes) {
    facts.limit = "the compressed debug information is too large to be read here";
  } else {
    read_producers(file, facts);
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
  auto running_id = build_id_of_file(open_program(pid, proc.root()), running);
  if (!running_id) return std::unexpected(running_id.error());
  image.build_id = *running_id;
  // As the target sees it: its own root, which a container changes.
  auto disk_id = build_id_of_file(open_as_seen(pid, image.path, proc.root()), on_disk);
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
