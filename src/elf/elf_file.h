// ElfFile: the one type that opens an ELF file: its headers, and its sections as bytes.
//
// In: a file that someone else made, by a ByteSource (read piece by piece, never mapped, within a
// budget). Out: segments, sections (decompressed when they are compressed), notes, symbols, and the
// links to separate debug information. Every offset and size is checked against the file; what
// does not fit is left out, and a section over the budget is refused with a reason. Written without
// libelf because the bytes are hostile and several threads read several files at once. Threads:
// none; one file is read by one thread at a time. Failures: what is no little-endian ELF file of a
// wanted class is an Error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

#include "base/byte_reader.h"
#include "base/result.h"
#include "elf/byte_source.h"

namespace assay::elf {

struct Section {
  std::string_view name;  // into the section names; valid while the file lives
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t link = 0;
  uint64_t entry_size = 0;
  uint64_t alignment = 0;

  bool executable() const;
  bool has_bytes() const;
};

struct Segment {
  uint32_t type = 0;
  uint32_t flags = 0;
  uint64_t offset = 0;
  uint64_t address = 0;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  uint64_t alignment = 0;
};

struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};
struct DebugAltLink {
  std::string name;
  std::string build_id;  // lowercase hex
};

// Stacks and names are read of 64-bit programs; what a program is like is told of both.
enum class Classes : uint8_t { only_64, both };

class ElfFile {
 public:
  static Result<std::unique_ptr<ElfFile>> open(std::unique_ptr<ByteSource> source,
                                               Classes classes = Classes::only_64);
  // The caller keeps its descriptor.
  static Result<std::unique_ptr<ElfFile>> open(int fd, Classes classes = Classes::only_64);
  static Result<std::unique_ptr<ElfFile>> open_memory(std::string bytes,
                                                      Classes classes = Classes::only_64);

  ByteSource& source() { return *source_; }
  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<Segment>& segments() const { return segments_; }
  bool is_64_bit() const { return is_64_bit_; }
  uint16_t type() const { return type_; }        // ET_*
  uint16_t machine() const { return machine_; }  // EM_*
  uint64_t entry() const { return entry_; }
  bool relocatable() const { return type_ == ET_REL; }
  // Why something of it was not read; empty when everything was that was asked for.
  const std::string& refusal() const { return refusal_.empty() ? source_->refusal() : refusal_; }

  const Section* find(std::string_view name) const;
  // The bytes of a section. `.debug_x` also finds `.zdebug_x`. Empty when absent, malformed or
  // refused.
  SectionBytes bytes(std::string_view name);
  SectionBytes bytes(const Section& section);
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
  // The bytes at an address, up to the end of its load segment.
  std::string_view view_at(uint64_t address, uint64_t count);
  // What is added to an offset in the first code segment to get an address; applies to all of the
  // image.
  int64_t code_bias() const;

  std::optional<DebugLink> debug_link();
  std::optional<DebugAltLink> debug_alt_link();
  // Lowercase hex of the GNU build-id note; "" when there is none.
  std::string build_id();

  // Calls visit(symbol, names) for at most `most` symbols of a symbol table; a symbol of a 32-bit
  // file is widened. `names` has the symbol's name at st_name.
  template <class Visit>
  void for_each_symbol(const Section& table, uint64_t most, const Visit& visit) {
    if (table.link >= sections_.size() || table.entry_size != symbol_bytes()) return;
    SectionBytes names = bytes(sections_[table.link]);
    SectionBytes symbols = bytes(table);
    (void)names.all();  // one read, instead of one for every piece of them
    ByteReader in(symbols.all());
    uint64_t count = std::min(symbols.size / symbol_bytes(), most);
    for (uint64_t i = 0; i < count && in.left() >= symbol_bytes(); ++i) {
      visit(read_symbol(in), names);
    }
  }

 private:
  template <class Class>
  bool read_headers();
  template <class Class>
  void read_segments(uint64_t offset, uint64_t count);
  template <class Class>
  void read_sections(uint64_t offset, uint64_t count, uint32_t names_index);
  const Section* find_debug(std::string_view name, bool& gnu_style) const;
  bool is_refused(const Section& section);
  SectionBytes decompressed(const Section& section, bool gnu_style);
  std::string build_id_in(uint64_t offset, uint64_t size, uint64_t alignment);

  uint64_t symbol_bytes() const { return is_64_bit_ ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym); }
  Elf64_Sym read_symbol(ByteReader& in) const {
    if (is_64_bit_) return in.fixed<Elf64_Sym>();
    auto narrow = in.fixed<Elf32_Sym>();
    Elf64_Sym symbol{};
    symbol.st_name = narrow.st_name;
    symbol.st_info = narrow.st_info;
    symbol.st_other = narrow.st_other;
    symbol.st_shndx = narrow.st_shndx;
    symbol.st_value = narrow.st_value;
    symbol.st_size = narrow.st_size;
    return symbol;
  }

  std::unique_ptr<ByteSource> source_;
  std::vector<Section> sections_;
  std::vector<Segment> segments_;
  std::map<uint64_t, std::unique_ptr<ByteSource>> decompressed_;  // by section offset
  bool is_64_bit_ = true;
  uint16_t type_ = 0, machine_ = 0;
  uint64_t entry_ = 0;
  std::string refusal_;
};

}  // namespace assay::elf
