#include "elf/elf_file.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <elf.h>
#include <fmt/format.h>

#include "elf/decompress.h"

namespace assay::elf {
namespace {

constexpr uint64_t kMaxSections = 1 << 17;
constexpr uint64_t kMaxSegments = 4096;

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (unsigned char c : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", c);
  return out;
}

constexpr uint64_t kWorthAThreadBytes = 64 << 10;
constexpr uint64_t kMaxNoteBytes = 1 << 20;
constexpr uint64_t kMaxBuildIdBytes = 64;
constexpr uint64_t kMostNotes = 32;  // sections and segments of notes that are looked at

// The headers of each class, so that one walk serves both.
struct Class64 {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  using Section = Elf64_Shdr;
};
struct Class32 {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  using Section = Elf32_Shdr;
};

uint64_t align_up(uint64_t value, uint64_t align) {
  return (value + align - 1) & ~(align - 1);
}

// Empty when damaged: the section is then as good as absent.
std::string inflate_section(std::string_view raw, bool gnu_style) {
  ByteReader cursor(raw);
  Result<std::string> out = assay::fail("an unknown compression");
  if (gnu_style) {
    bool magic = cursor.bytes(4) == "ZLIB";
    uint64_t size = __builtin_bswap64(cursor.u64());
    if (magic && cursor.ok()) out = inflate_zlib(raw.substr(cursor.offset()), size);
  } else {
    auto header = cursor.fixed<Elf64_Chdr>();
    constexpr uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, newer than Debian 12's elf.h
    std::string_view body = cursor.ok() ? raw.substr(cursor.offset()) : std::string_view();
    if (header.ch_type == ELFCOMPRESS_ZLIB) out = inflate_zlib(body, header.ch_size);
    if (header.ch_type == kZstd) out = inflate_zstd(body, header.ch_size);
  }
  return out ? std::move(*out) : std::string();
}

}  // namespace

bool Section::executable() const {
  return flags & SHF_EXECINSTR;
}
bool Section::has_bytes() const {
  return type != SHT_NOBITS && type != SHT_NULL;
}

Result<std::unique_ptr<ElfFile>> ElfFile::open(std::unique_ptr<ByteSource> source,
                                               Classes classes) {
  std::string_view ident = source->view(0, EI_NIDENT);
  if (ident.size() < EI_NIDENT || std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0)
    return fail("not an ELF file");
  bool is_64 = ident[EI_CLASS] == ELFCLASS64, is_32 = ident[EI_CLASS] == ELFCLASS32;
  bool wanted = is_64 || (is_32 && classes == Classes::both);
  if (!wanted || ident[EI_DATA] != ELFDATA2LSB) {
    return fail("not a {}little-endian ELF file", classes == Classes::both ? "" : "64-bit ");
  }
  std::unique_ptr<ElfFile> file(new ElfFile);
  file->source_ = std::move(source);
  file->is_64_bit_ = is_64;
  bool whole = is_64 ? file->read_headers<Class64>() : file->read_headers<Class32>();
  if (!whole) return fail("the ELF file ends in its header");
  return file;
}

Result<std::unique_ptr<ElfFile>> ElfFile::open(int fd, Classes classes) {
  auto source = ByteSource::from_file(fd);
  if (!source) return std::unexpected(source.error());
  return open(std::move(*source), classes);
}

Result<std::unique_ptr<ElfFile>> ElfFile::open_memory(std::string bytes, Classes classes) {
  return open(ByteSource::from_memory(std::move(bytes)), classes);
}

template <class Class>
bool ElfFile::read_headers() {
  using SectionHeader = typename Class::Section;
  ByteReader in(source_->view(0, sizeof(typename Class::Header)));
  auto header = in.fixed<typename Class::Header>();
  if (!in.ok()) return false;
  type_ = header.e_type;
  machine_ = header.e_machine;
  entry_ = header.e_entry;
  uint64_t section_count = header.e_shnum;
  uint32_t names_index = header.e_shstrndx;
  uint64_t segment_count = header.e_phnum;
  if (header.e_shoff != 0 && header.e_shentsize == sizeof(SectionHeader)) {
    // Counts too large for their fields are kept in section 0.
    ByteReader first(source_->view(header.e_shoff, sizeof(SectionHeader)));
    auto zero = first.fixed<SectionHeader>();
    if (first.ok() && section_count == 0) section_count = zero.sh_size;
    if (first.ok() && names_index == SHN_XINDEX) names_index = zero.sh_link;
    if (first.ok() && segment_count == PN_XNUM) segment_count = zero.sh_info;
    read_sections<Class>(header.e_shoff, std::min(section_count, kMaxSections), names_index);
  }
  if (header.e_phoff != 0 && header.e_phentsize == sizeof(typename Class::Segment)) {
    read_segments<Class>(header.e_phoff, std::min(segment_count, kMaxSegments));
  }
  return true;
}

template <class Class>
void ElfFile::read_segments(uint64_t offset, uint64_t count) {
  using Header = typename Class::Segment;
  ByteReader in(source_->view(offset, count * sizeof(Header)));
  for (uint64_t i = 0; i < count; ++i) {
    auto raw = in.fixed<Header>();
    if (!in.ok()) return;
    segments_.push_back({raw.p_type, raw.p_flags, raw.p_offset, raw.p_vaddr, raw.p_filesz,
                         raw.p_memsz, raw.p_align});
  }
}

template <class Class>
void ElfFile::read_sections(uint64_t offset, uint64_t count, uint32_t names_index) {
  using Header = typename Class::Section;
  ByteReader in(source_->view(offset, count * sizeof(Header)));
  std::vector<uint32_t> names;
  for (uint64_t i = 0; i < count; ++i) {
    auto raw = in.fixed<Header>();
    if (!in.ok()) break;
    Section section{{},          raw.sh_type, raw.sh_flags,   raw.sh_addr,     raw.sh_offset,
                    raw.sh_size, raw.sh_link, raw.sh_entsize, raw.sh_addralign};
    bool inside =
        section.offset <= source_->size() && section.size <= source_->size() - section.offset;
    // Kept in its place, so that links by number hold, but without bytes.
    if (section.has_bytes() && !inside) section.type = SHT_NULL;
    sections_.push_back(section);
    names.push_back(raw.sh_name);
  }
  if (names_index >= sections_.size() || !sections_[names_index].has_bytes()) return;
  SectionBytes text{source_.get(), sections_[names_index].offset, sections_[names_index].size};
  for (size_t i = 0; i < sections_.size(); ++i) sections_[i].name = text.text(names[i]);
}

const Section* ElfFile::find(std::string_view name) const {
  for (const auto& section : sections_) {
    if (section.name == name && section.type != SHT_NULL) return &section;
  }
  return nullptr;
}

// `.debug_x`, or the older way to compress it, `.zdebug_x`.
const Section* ElfFile::find_debug(std::string_view name, bool& gnu_style) const {
  gnu_style = false;
  const Section* section = find(name);
  if (section == nullptr && name.starts_with(".debug_")) {
    section = find(".z" + std::string(name.substr(1)));
    gnu_style = section != nullptr;
  }
  return section != nullptr && section->has_bytes() && section->size > 0 ? section : nullptr;
}

bool ElfFile::has_bytes(std::string_view name) const {
  bool gnu_style = false;
  return find_debug(name, gnu_style) != nullptr;
}

uint64_t ElfFile::expected_bytes(std::string_view name) const {
  bool gnu_style = false;
  const Section* section = find_debug(name, gnu_style);
  if (section == nullptr) return 0;
  return gnu_style || section->flags & SHF_COMPRESSED ? 4 * section->size : section->size;
}

SectionBytes ElfFile::bytes(std::string_view name) {
  bool gnu_style = false;
  const Section* section = find_debug(name, gnu_style);
  if (section == nullptr || is_refused(*section)) return {};
  return gnu_style ? decompressed(*section, true) : bytes(*section);
}

bool ElfFile::is_refused(const Section& section) {
  if (section.size <= source_->budget().section_bytes) return false;
  refusal_ = fmt::format("section {} has {} bytes, more than the {} that are read of one",
                         section.name, section.size, source_->budget().section_bytes);
  return true;
}

SectionBytes ElfFile::bytes(const Section& section) {
  if (!section.has_bytes() || is_refused(section)) return {};
  if (section.flags & SHF_COMPRESSED) return decompressed(section, false);
  return {source_.get(), section.offset, section.size};
}

SectionBytes ElfFile::decompressed(const Section& section, bool gnu_style) {
  auto [it, fresh] = decompressed_.try_emplace(section.offset);
  if (fresh) {
    it->second = ByteSource::from_memory(
        inflate_section(source_->view(section.offset, section.size), gnu_style));
    source_->release(section.offset, section.size);
  }
  return {it->second.get(), 0, it->second->size()};
}

void ElfFile::prepare(const std::vector<std::string>& names) {
  struct Job {
    const Section* section;
    bool gnu_style;
    std::string_view raw;
    std::string out;
  };
  std::vector<Job> jobs;
  for (const auto& name : names) {
    bool gnu_style = false;
    const Section* section = find_debug(name, gnu_style);
    if (section == nullptr || (!gnu_style && !(section->flags & SHF_COMPRESSED))) continue;
    if (section->size < kWorthAThreadBytes || decompressed_.contains(section->offset)) continue;
    if (is_refused(*section)) continue;
    jobs.push_back({section, gnu_style, source_->view(section->offset, section->size), {}});
  }
  std::vector<std::jthread> threads;
  for (auto& job : jobs)
    threads.emplace_back([&job] { job.out = inflate_section(job.raw, job.gnu_style); });
  threads.clear();
  for (auto& job : jobs) {
    decompressed_[job.section->offset] = ByteSource::from_memory(std::move(job.out));
    source_->release(job.section->offset, job.section->size);
  }
}

std::optional<uint64_t> ElfFile::to_address(uint64_t file_offset) const {
  std::optional<uint64_t> found;
  for (const auto& segment : segments_) {
    if (segment.type != PT_LOAD || file_offset < segment.offset) continue;
    if (file_offset - segment.offset >= segment.file_size) continue;
    uint64_t address = file_offset - segment.offset + segment.address;
    if (segment.flags & PF_X) return address;
    if (!found) found = address;
  }
  return found;
}

std::optional<uint64_t> ElfFile::to_offset(uint64_t address) const {
  for (const auto& segment : segments_) {
    if (segment.type != PT_LOAD || address < segment.address) continue;
    if (address - segment.address >= segment.file_size) continue;
    return address - segment.address + segment.offset;
  }
  return std::nullopt;
}

std::string_view ElfFile::view_at(uint64_t address, uint64_t count) {
  for (const auto& segment : segments_) {
    if (segment.type != PT_LOAD || address < segment.address) continue;
    uint64_t into = address - segment.address;
    if (into >= segment.file_size || segment.offset > UINT64_MAX - into) continue;
    return source_->view(segment.offset + into, std::min(count, segment.file_size - into));
  }
  return {};
}

int64_t ElfFile::code_bias() const {
  for (const auto& segment : segments_) {
    if (segment.type == PT_LOAD && segment.flags & PF_X) {
      return static_cast<int64_t>(segment.address - segment.offset);
    }
  }
  return 0;
}

std::optional<DebugLink> ElfFile::debug_link() {
  SectionBytes section = bytes(".gnu_debuglink");
  if (!section || section.size > 4096) return std::nullopt;
  ByteReader cursor(section.all());
  DebugLink link;
  link.name = cursor.text();
  cursor.seek((cursor.offset() + 3) & ~uint64_t{3});
  link.crc = cursor.u32();
  // A name, not a path: it must not lead out of the folders that are searched.
  if (!cursor.ok() || link.name.empty() || link.name.find('/') != std::string::npos)
    return std::nullopt;
  return link;
}

std::optional<DebugAltLink> ElfFile::debug_alt_link() {
  SectionBytes section = bytes(".gnu_debugaltlink");
  if (!section || section.size > 4096) return std::nullopt;
  ByteReader cursor(section.all());
  DebugAltLink link;
  link.name = cursor.text();
  link.build_id = to_hex(cursor.bytes(cursor.left()));
  if (!cursor.ok() || link.build_id.empty()) return std::nullopt;
  return link;
}

std::string ElfFile::build_id_in(uint64_t offset, uint64_t size, uint64_t alignment) {
  alignment = alignment == 8 ? 8 : 4;
  std::string_view notes = source_->view(offset, std::min(size, kMaxNoteBytes));
  for (uint64_t at = 0; at < notes.size();) {
    ByteReader in(notes, at);
    auto note = in.fixed<Elf64_Nhdr>();  // the same three words in a 32-bit file
    uint64_t name = in.offset();
    uint64_t content = align_up(name + note.n_namesz, alignment);
    if (!in.ok()) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        in.bytes(4) == std::string_view("GNU\0", 4)) {
      in.seek(content);
      std::string_view id = in.bytes(note.n_descsz);
      return id.size() <= kMaxBuildIdBytes ? to_hex(id) : "";
    }
    at = align_up(content + note.n_descsz, alignment);
  }
  return "";
}

// Sections come first: a separate debug file keeps its note section, but its program headers point
// to bytes it no longer has. Files stripped of sections have the program headers alone.
std::string ElfFile::build_id() {
  // Headers can name the same bytes a hundred thousand times.
  uint64_t notes_left = kMostNotes;
  for (const auto& section : sections_) {
    if (section.type != SHT_NOTE || notes_left == 0) continue;
    --notes_left;
    std::string id = build_id_in(section.offset, section.size, section.alignment);
    if (!id.empty()) return id;
  }
  for (const auto& segment : segments_) {
    if (segment.type != PT_NOTE || notes_left == 0) continue;
    --notes_left;
    std::string id = build_id_in(segment.offset, segment.file_size, segment.alignment);
    if (!id.empty()) return id;
  }
  return "";
}

}  // namespace assay::elf
