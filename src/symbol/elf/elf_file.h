// ElfFile: the headers of one 64-bit ELF file, and its sections as bytes.
//
// In: a file someone else made. Out: segments, sections (decompressed when they are compressed),
// and the links to separate debug information. Every offset and size is checked against the file;
// what does not fit is left out. Written without libelf because the bytes are hostile and several
// threads read several files at once. Threads: none; guarded by its module's lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbol/elf/byte_source.h"

namespace assay::symbol {

struct ElfSection {
  std::string_view name;  // into the section names; valid while the file lives
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t link = 0;
  uint64_t entry_size = 0;

  bool executable() const;
  bool has_bytes() const;
};

struct ElfSegment {
  uint32_t type = 0;
  uint32_t flags = 0;
  uint64_t offset = 0;
  uint64_t address = 0;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
};

struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};
struct DebugAltLink {
  std::string name;
  std::string build_id;  // lowercase hex
};

class ElfFile {
 public:
  static Result<std::unique_ptr<ElfFile>> open(std::unique_ptr<ByteSource> source);

  ByteSource& source() { return *source_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  bool relocatable() const { return relocatable_; }

  const ElfSection* find(std::string_view name) const;
  // The bytes of a section. `.debug_x` also finds `.zdebug_x`. Empty when absent or malformed.
  SectionBytes bytes(std::string_view name);
  SectionBytes bytes(const ElfSection& section);
  // Whether bytes(name) would be more than nothing; decompresses nothing.
  bool has_bytes(std::string_view name) const;
  // How many bytes bytes(name) would read, about: compressed ones unpack to some four times their
  // size.
  uint64_t expected_bytes(std::string_view name) const;
  // Decompresses sections that will be wanted, at the same time.
  void prepare(const std::vector<std::string>& names);

  // File offset of a loaded byte to its link-time address; code segments win where both hold it.
  std::optional<uint64_t> to_address(uint64_t file_offset) const;
  std::optional<uint64_t> to_offset(uint64_t address) const;
  // What is added to an offset in the first code segment to get an address; applies to all of the
  // image.
  int64_t code_bias() const;

  std::optional<DebugLink> debug_link();
  std::optional<DebugAltLink> debug_alt_link();
  std::string build_id();

 private:
  bool read_headers();
  void read_segments(uint64_t offset, uint64_t count);
  void read_sections(uint64_t offset, uint64_t count, uint32_t names_index);
  const ElfSection* find_debug(std::string_view name, bool& gnu_style) const;
  SectionBytes decompressed(const ElfSection& section, bool gnu_style);

  std::unique_ptr<ByteSource> source_;
  std::vector<ElfSection> sections_;
  std::vector<ElfSegment> segments_;
  std::map<uint64_t, std::unique_ptr<ByteSource>> decompressed_;  // by section offset
  bool relocatable_ = false;
};

}  // namespace assay::symbol
