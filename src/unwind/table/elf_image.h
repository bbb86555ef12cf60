// ElfImage: the headers of a 64-bit little-endian ELF file and the bytes of its sections, every
// offset and size checked against the file.
//
// In: a file descriptor (read with pread, never mapped: a file that shrinks meanwhile must not
// fault) or bytes in memory, which must outlive the image. Threads: const after open(). Failures:
// an Error for what is no such ELF file; a section that lies outside the file is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::unwind {

class ElfImage {
 public:
  struct LoadSegment {
    uint64_t file_offset = 0, vaddr = 0, file_bytes = 0;
    bool executable = false;
  };
  struct Section {
    std::string name;
    uint64_t vaddr = 0, file_offset = 0, bytes = 0, entry_bytes = 0;
    uint32_t type = 0, link = 0;
    bool compressed = false;
  };

  static Result<ElfImage> open(int fd);
  static Result<ElfImage> open(std::span<const std::byte> bytes);

  uint16_t machine() const { return machine_; }
  uint64_t entry() const { return entry_; }
  const std::vector<LoadSegment>& segments() const { return segments_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* section(std::string_view name) const;

  // Virtual address of .eh_frame_hdr as the program headers give it; nullopt when there is none.
  std::optional<uint64_t> eh_frame_hdr() const { return eh_frame_hdr_; }

  // Bytes of the file; fewer than asked for when it ends earlier.
  std::vector<std::byte> read(uint64_t file_offset, uint64_t bytes) const;
  std::vector<std::byte> read(const Section& section) const;
  // Bytes at a virtual address, up to the end of its load segment.
  std::vector<std::byte> read_at_vaddr(uint64_t vaddr, uint64_t bytes) const;

 private:
  Result<void> parse();
  void parse_segments(uint64_t offset, uint64_t count);
  void parse_sections(uint64_t offset, uint64_t count, uint64_t name_index);

  int fd_ = -1;
  std::span<const std::byte> bytes_;
  uint64_t file_bytes_ = 0;
  uint16_t machine_ = 0;
  uint64_t entry_ = 0;
  std::vector<LoadSegment> segments_;
  std::vector<Section> sections_;
  std::optional<uint64_t> eh_frame_hdr_;
};

}  // namespace assay::unwind
