// ElfReader: headers and symbol tables of a module, read piece by piece.
//
// In: a module of this process; its file is read with pread (a mapped file that shrinks would kill
// the host), the vdso from memory. Out: its build id, the link-time address of a mapped address,
// its symbols. Every offset is checked against the size. Failures: open() is false.
#pragma once

#include <cstddef>
#include <cstdint>

#include <elf.h>

#include "inject/inproc/write/module_map.h"

namespace assay::inproc {

class ElfReader {
 public:
  ElfReader() = default;
  ~ElfReader();
  ElfReader(const ElfReader&) = delete;
  ElfReader& operator=(const ElfReader&) = delete;

  bool open(const Module& module);
  bool open_file(const char* path);
  bool read(uint64_t offset, void* into, size_t bytes) const;
  // As many bytes as there are, up to `bytes`.
  size_t read_some(uint64_t offset, void* into, size_t bytes) const;

  // Lowercase hex with a NUL; false: there is none.
  bool build_id(char* hex, size_t room) const;
  // The link-time address of a file offset; false: in no segment.
  bool link_address(uint64_t file_offset, uint64_t& address) const;
  // The table of functions: .symtab, else .dynsym.
  struct Symbols {
    uint64_t offset = 0, count = 0, names_offset = 0, names_bytes = 0;
    bool full = false;  // .symtab
  };
  bool symbols(Symbols& out) const;

 private:
  bool check_head();

  static constexpr size_t kMaxSegments = 64;
  static constexpr size_t kMaxSections = 4096;
  int fd_ = -1;
  const char* memory_ = nullptr;
  uint64_t size_ = 0;
  Elf64_Ehdr head_{};
  Elf64_Phdr segments_[kMaxSegments];
  size_t segment_count_ = 0;
};

}  // namespace assay::inproc
