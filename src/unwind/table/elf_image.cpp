#include "unwind/table/elf_image.h"

#include <algorithm>
#include <cstring>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::unwind {

namespace {

// Sections larger than this are not call-frame information of a real program.
constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxHeaders = 65536;
constexpr size_t kMaxNameBytes = 256;

template <class T>
std::optional<T> item_at(std::span<const std::byte> bytes, uint64_t index) {
  if (index >= bytes.size() / sizeof(T)) return std::nullopt;
  T item;
  std::memcpy(&item, bytes.data() + index * sizeof(T), sizeof(T));
  return item;
}

}  // namespace

Result<ElfImage> ElfImage::open(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return fail_errno("cannot stat the module's file");
  if (!S_ISREG(status.st_mode)) return fail("the module is not a regular file");
  ElfImage image;
  image.fd_ = fd;
  image.file_bytes_ = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  if (auto parsed = image.parse(); !parsed) return std::unexpected(parsed.error());
  return image;
}

Result<ElfImage> ElfImage::open(std::span<const std::byte> bytes) {
  ElfImage image;
  image.bytes_ = bytes;
  image.file_bytes_ = bytes.size();
  if (auto parsed = image.parse(); !parsed) return std::unexpected(parsed.error());
  return image;
}

std::vector<std::byte> ElfImage::read(uint64_t file_offset, uint64_t bytes) const {
  if (file_offset >= file_bytes_) return {};
  bytes = std::min({bytes, file_bytes_ - file_offset, kMaxReadBytes});
  if (fd_ < 0) {
    auto part = bytes_.subspan(file_offset, bytes);
    return {part.begin(), part.end()};
  }
  std::vector<std::byte> out(bytes);
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t n =
        ::pread(fd_, out.data() + done, bytes - done, static_cast<off_t>(file_offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<uint64_t>(n);
  }
  out.resize(done);
  return out;
}

std::vector<std::byte> ElfImage::read(const Section& section) const {
  if (section.type == SHT_NOBITS || section.compressed) return {};
  return read(section.file_offset, section.bytes);
}

std::vector<std::byte> ElfImage::read_at_vaddr(uint64_t vaddr, uint64_t bytes) const {
  for (const LoadSegment& s : segments_) {
    if (vaddr < s.vaddr || vaddr - s.vaddr >= s.file_bytes) continue;
    uint64_t offset = vaddr - s.vaddr;
    return read(s.file_offset + offset, std::min(bytes, s.file_bytes - offset));
  }
  return {};
}

const ElfImage::Section* ElfImage::section(std::string_view name) const {
  for (const Section& s : sections_) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

Result<void> ElfImage::parse() {
  auto bytes = read(0, sizeof(Elf64_Ehdr));
  auto header = item_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return fail("not an ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return fail("not a 64-bit little-endian ELF file");
  }
  machine_ = header->e_machine;
  entry_ = header->e_entry;
  if (header->e_phentsize == sizeof(Elf64_Phdr)) parse_segments(header->e_phoff, header->e_phnum);
  if (header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shoff != 0) {
    uint64_t count = header->e_shnum, names = header->e_shstrndx;
    if (count == 0 || names == SHN_XINDEX) {  // the first section header holds what did not fit
      auto first = read(header->e_shoff, sizeof(Elf64_Shdr));
      if (auto s = item_at<Elf64_Shdr>(first, 0)) {
        if (count == 0) count = s->sh_size;
        if (names == SHN_XINDEX) names = s->sh_link;
      }
    }
    parse_sections(header->e_shoff, count, names);
  }
  return {};
}

void ElfImage::parse_segments(uint64_t offset, uint64_t count) {
  auto bytes = read(offset, std::min(count, kMaxHeaders) * sizeof(Elf64_Phdr));
  for (uint64_t i = 0; auto p = item_at<Elf64_Phdr>(bytes, i); ++i) {
    if (p->p_type == PT_GNU_EH_FRAME) eh_frame_hdr_ = p->p_vaddr;
    if (p->p_type != PT_LOAD || p->p_offset >= file_bytes_) continue;
    uint64_t size = std::min<uint64_t>(p->p_filesz, file_bytes_ - p->p_offset);
    if (size == 0 || p->p_vaddr > UINT64_MAX - size) continue;
    segments_.push_back({p->p_offset, p->p_vaddr, size, (p->p_flags & PF_X) != 0});
  }
}

void ElfImage::parse_sections(uint64_t offset, uint64_t count, uint64_t name_index) {
  auto bytes = read(offset, std::min(count, kMaxHeaders) * sizeof(Elf64_Shdr));
  std::vector<std::byte> names;
  if (auto s = item_at<Elf64_Shdr>(bytes, name_index); s && s->sh_type != SHT_NOBITS) {
    names = read(s->sh_offset, s->sh_size);
  }
  for (uint64_t i = 0; auto s = item_at<Elf64_Shdr>(bytes, i); ++i) {
    Section section;
    if (s->sh_name < names.size()) {
      auto text = reinterpret_cast<const char*>(names.data()) + s->sh_name;
      section.name.assign(text,
                          ::strnlen(text, std::min(names.size() - s->sh_name, kMaxNameBytes)));
    }
    section.vaddr = s->sh_addr;
    section.file_offset = s->sh_offset;
    section.bytes = s->sh_size;
    section.entry_bytes = s->sh_entsize;
    section.type = s->sh_type;
    section.link = s->sh_link;
    section.compressed = (s->sh_flags & SHF_COMPRESSED) != 0;
    sections_.push_back(std::move(section));
  }
}

}  // namespace assay::unwind
