#include "symbol/elf/elf_file.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <elf.h>
#include <fmt/format.h>

#include "symbol/elf/byte_cursor.h"
#include "symbol/elf/decompress.h"

namespace assay::symbol {
namespace {

constexpr uint64_t kMaxSections = 1 << 17;
constexpr uint64_t kMaxSegments = 4096;

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (unsigned char c : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", c);
  return out;
}

constexpr uint64_t kWorthAThreadBytes = 64 << 10;

// Empty when damaged: the section is then as good as absent.
std::string inflate_section(std::string_view raw, bool gnu_style) {
  ByteCursor cursor(raw);
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

bool ElfSection::executable() const {
  return flags & SHF_EXECINSTR;
}
bool ElfSection::has_bytes() const {
  return type != SHT_NOBITS && type != SHT_NULL;
}

Result<std::unique_ptr<ElfFile>> ElfFile::open(std::unique_ptr<ByteSource> source) {
  std::unique_ptr<ElfFile> file(new ElfFile);
  file->source_ = std::move(source);
  if (!file->read_headers()) return fail("not a 64-bit little-endian ELF file");
  return file;
}

bool ElfFile::read_headers() {
  ByteCursor cursor(source_->view(0, sizeof(Elf64_Ehdr)));
  auto header = cursor.fixed<Elf64_Ehdr>();
  if (!cursor.ok() || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return false;
  relocatable_ = header.e_type == ET_REL;
  uint64_t section_count = header.e_shnum;
  uint32_t names_index = header.e_shstrndx;
  uint64_t segment_count = header.e_phnum;
  if (header.e_shoff != 0 && header.e_shentsize == sizeof(Elf64_Shdr)) {
    // Counts too large for their fields are kept in section 0.
    ByteCursor first(source_->view(header.e_shoff, sizeof(Elf64_Shdr)));
    auto zero = first.fixed<Elf64_Shdr>();
    if (first.ok() && section_count == 0) section_count = zero.sh_size;
    if (first.ok() && names_index == SHN_XINDEX) names_index = zero.sh_link;
    if (first.ok() && segment_count == PN_XNUM) segment_count = zero.sh_info;
    read_sections(header.e_shoff, std::min(section_count, kMaxSections), names_index);
  }
  if (header.e_phoff != 0 && header.e_phentsize == sizeof(Elf64_Phdr)) {
    read_segments(header.e_phoff, std::min(segment_count, kMaxSegments));
  }
  return true;
}

void ElfFile::read_segments(uint64_t offset, uint64_t count) {
  ByteCursor cursor(source_->view(offset, count * sizeof(Elf64_Phdr)));
  for (uint64_t i = 0; i < count; ++i) {
    auto raw = cursor.fixed<Elf64_Phdr>();
    if (!cursor.ok()) return;
    segments_.push_back(
        {raw.p_type, raw.p_flags, raw.p_offset, raw.p_vaddr, raw.p_filesz, raw.p_memsz});
  }
}

void ElfFile::read_sections(uint64_t offset, uint64_t count, uint32_t names_index) {
  ByteCursor cursor(source_->view(offset, count * sizeof(Elf64_Shdr)));
  std::vector<uint32_t> names;
  for (uint64_t i = 0; i < count; ++i) {
    auto raw = cursor.fixed<Elf64_Shdr>();
    if (!cursor.ok()) break;
    ElfSection section{{},          raw.sh_type, raw.sh_flags,  raw.sh_addr, raw.sh_offset,
                       raw.sh_size, raw.sh_link, raw.sh_entsize};
    bool inside =
        raw.sh_offset <= source_->size() && raw.sh_size <= source_->size() - raw.sh_offset;
    // Kept in its place, so that links by number hold, but without bytes.
    if (section.has_bytes() && !inside) section.type = SHT_NULL;
    sections_.push_back(section);
    names.push_back(raw.sh_name);
  }
  if (names_index >= sections_.size() || !sections_[names_index].has_bytes()) return;
  SectionBytes text{source_.get(), sections_[names_index].offset, sections_[names_index].size};
  for (size_t i = 0; i < sections_.size(); ++i) sections_[i].name = text.text(names[i]);
}

const ElfSection* ElfFile::find(std::string_view name) const {
  for (const auto& section : sections_) {
    if (section.name == name && section.type != SHT_NULL) return &section;
  }
  return nullptr;
}

// `.debug_x`, or the older way to compress it, `.zdebug_x`.
const ElfSection* ElfFile::find_debug(std::string_view name, bool& gnu_style) const {
  gnu_style = false;
  const ElfSection* section = find(name);
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
  const ElfSection* section = find_debug(name, gnu_style);
  if (section == nullptr) return 0;
  return gnu_style || section->flags & SHF_COMPRESSED ? 4 * section->size : section->size;
}

SectionBytes ElfFile::bytes(std::string_view name) {
  bool gnu_style = false;
  const ElfSection* section = find_debug(name, gnu_style);
  if (section == nullptr) return {};
  return gnu_style ? decompressed(*section, true) : bytes(*section);
}

SectionBytes ElfFile::bytes(const ElfSection& section) {
  if (!section.has_bytes()) return {};
  if (section.flags & SHF_COMPRESSED) return decompressed(section, false);
  return {source_.get(), section.offset, section.size};
}

SectionBytes ElfFile::decompressed(const ElfSection& section, bool gnu_style) {
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
    const ElfSection* section;
    bool gnu_style;
    std::string_view raw;
    std::string out;
  };
  std::vector<Job> jobs;
  for (const auto& name : names) {
    bool gnu_style = false;
    const ElfSection* section = find_debug(name, gnu_style);
    if (section == nullptr || (!gnu_style && !(section->flags & SHF_COMPRESSED))) continue;
    if (section->size < kWorthAThreadBytes || decompressed_.contains(section->offset)) continue;
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
  ByteCursor cursor(section.all());
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
  ByteCursor cursor(section.all());
  DebugAltLink link;
  link.name = cursor.text();
  link.build_id = to_hex(cursor.bytes(cursor.remaining()));
  if (!cursor.ok() || link.build_id.empty()) return std::nullopt;
  return link;
}

std::string ElfFile::build_id() {
  const auto* section = find(".note.gnu.build-id");
  if (section == nullptr || !section->has_bytes() || section->size > 1024) return "";
  ByteCursor cursor(bytes(*section).all());
  auto note = cursor.fixed<Elf64_Nhdr>();
  if (cursor.bytes(4) != std::string_view("GNU\0", 4) || note.n_namesz != 4) return "";
  std::string_view id = cursor.bytes(note.n_descsz);
  return cursor.ok() && note.n_type == NT_GNU_BUILD_ID ? to_hex(id) : "";
}

}  // namespace assay::symbol
