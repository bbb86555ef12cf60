#include "inject/inproc/write/elf_reader.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::inproc {

ElfReader::~ElfReader() {
  if (fd_ >= 0) close(fd_);
}

bool ElfReader::open(const Module& module) {
  if (std::strcmp(module.path, "[vdso]") == 0) {
    memory_ = reinterpret_cast<const char*>(module.start);
    size_ = module.end - module.start;
    return check_head();
  }
  if (module.path[0] != '/') return false;
  struct stat about {};
  bool same_file = stat(module.path, &about) == 0 && about.st_ino == module.inode;
  if (same_file && open_file(module.path)) return true;
  // The file was replaced or removed since: the kernel still has the mapped file (if we may open
  // it).
  char link[80];
  snprintf(link, sizeof link, "/proc/self/map_files/%lx-%lx", module.start, module.end);
  return open_file(link);
}

bool ElfReader::open_file(const char* path) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return false;
  struct stat about {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(fd);
    return false;
  }
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  size_ = static_cast<uint64_t>(about.st_size);
  return check_head();
}

size_t ElfReader::read_some(uint64_t offset, void* into, size_t bytes) const {
  if (offset >= size_) return 0;
  if (bytes > size_ - offset) bytes = size_ - offset;
  if (memory_ != nullptr) {
    std::memcpy(into, memory_ + offset, bytes);
    return bytes;
  }
  size_t done = 0;
  while (done < bytes) {
    ssize_t got = pread(fd_, static_cast<char*>(into) + done, bytes - done,
                        static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

bool ElfReader::read(uint64_t offset, void* into, size_t bytes) const {
  return read_some(offset, into, bytes) == bytes;
}

bool ElfReader::check_head() {
  if (!read(0, &head_, sizeof head_)) return false;
  bool ours = std::memcmp(head_.e_ident, ELFMAG, SELFMAG) == 0 &&
              head_.e_ident[EI_CLASS] == ELFCLASS64 && head_.e_ident[EI_DATA] == ELFDATA2LSB &&
              head_.e_phentsize == sizeof(Elf64_Phdr);
  if (!ours) return false;
  segment_count_ = head_.e_phnum < kMaxSegments ? head_.e_phnum : kMaxSegments;
  return read(head_.e_phoff, segments_, segment_count_ * sizeof(Elf64_Phdr));
}

bool ElfReader::link_address(uint64_t file_offset, uint64_t& address) const {
  for (size_t i = 0; i < segment_count_; ++i) {
    const Elf64_Phdr& segment = segments_[i];
    if (segment.p_type != PT_LOAD || file_offset < segment.p_offset) continue;
    if (file_offset - segment.p_offset >= segment.p_filesz) continue;
    address = file_offset - segment.p_offset + segment.p_vaddr;
    return true;
  }
  return false;
}

bool ElfReader::build_id(char* hex, size_t room) const {
  char notes[4096];
  for (size_t i = 0; i < segment_count_; ++i) {
    if (segments_[i].p_type != PT_NOTE) continue;
    size_t wanted = segments_[i].p_filesz < sizeof notes ? segments_[i].p_filesz : sizeof notes;
    size_t bytes = read_some(segments_[i].p_offset, notes, wanted);
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes + at, sizeof note);
      uint64_t name = at + sizeof note;
      uint64_t id = name + ((uint64_t{note.n_namesz} + 3) & ~uint64_t{3});
      uint64_t next = id + ((uint64_t{note.n_descsz} + 3) & ~uint64_t{3});
      if (next > bytes) break;
      bool found = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                   std::memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
                   note.n_descsz * 2 < room;
      if (found) {
        for (uint32_t k = 0; k < note.n_descsz; ++k)
          snprintf(hex + 2 * k, 3, "%02x", static_cast<unsigned char>(notes[id + k]));
        return true;
      }
      at = next;
    }
  }
  return false;
}

bool ElfReader::symbols(Symbols& out) const {
  if (head_.e_shentsize != sizeof(Elf64_Shdr) || head_.e_shnum > kMaxSections) return false;
  auto section = [&](uint32_t index, Elf64_Shdr& into) {
    return index < head_.e_shnum &&
           read(head_.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr), &into, sizeof into);
  };
  for (uint32_t i = 0; i < head_.e_shnum && !out.full; ++i) {
    Elf64_Shdr table, names;
    if (!section(i, table)) return out.count > 0;
    if (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) continue;
    bool usable = table.sh_entsize == sizeof(Elf64_Sym) && table.sh_offset < size_ &&
                  table.sh_size <= size_ - table.sh_offset && section(table.sh_link, names) &&
                  names.sh_offset < size_ && names.sh_size <= size_ - names.sh_offset;
    if (!usable) continue;
    out.offset = table.sh_offset;
    out.count = table.sh_size / sizeof(Elf64_Sym);
    out.names_offset = names.sh_offset;
    out.names_bytes = names.sh_size;
    out.full = table.sh_type == SHT_SYMTAB;
  }
  return out.count > 0;
}

}  // namespace assay::inproc
