#include "elf/unit_producers.h"

#include <algorithm>

#include <dwarf.h>

#include "elf/abbrev.h"
#include "elf/unit_entry.h"

namespace assay::elf {
namespace {

constexpr uint64_t kAbbrevBytes = 4096;  // the root's shape is nearly always the table's first
constexpr uint64_t kMaxAbbrevBytes = 4 << 20;
constexpr uint64_t kRootBytes = 4096;
constexpr uint64_t kScanWindowBytes = 32 << 20;

struct Texts {
  SectionBytes str, line_str, str_offsets;
};

struct Root {
  AttrValue producer, str_offsets_base;
};

bool read_root(const SectionBytes& info, const SectionBytes& abbrevs, const UnitHeader& header,
               Root& root) {
  uint64_t size = std::min(kRootBytes, header.end - header.offset);
  ByteReader in(info.view(header.offset, size), header.first_die - header.offset);
  uint64_t code = in.uleb();
  for (uint64_t window : {kAbbrevBytes, kMaxAbbrevBytes}) {
    AbbrevTable table(abbrevs.view(header.abbrev_offset, window), code);
    const Abbrev* abbrev = table.find(code);
    if (abbrev == nullptr) continue;
    const AttrShape* shapes = table.attrs(*abbrev);
    for (uint32_t i = 0; i < abbrev->count && in.ok(); ++i) {
      AttrValue value = read_value(in, shapes[i], header);
      if (!in.ok()) break;
      if (shapes[i].name == DW_AT_producer) root.producer = value;
      if (shapes[i].name == DW_AT_str_offsets_base) root.str_offsets_base = value;
    }
    return true;
  }
  return false;
}

std::string_view text_of(const Root& root, const UnitHeader& header, const Texts& texts) {
  switch (root.producer.form) {
    case DW_FORM_string:
      return root.producer.inlined;
    case DW_FORM_strp:
      return texts.str.text(root.producer.value);
    case DW_FORM_line_strp:
      return texts.line_str.text(root.producer.value);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4: {
      unsigned width = header.offset_size();
      uint64_t base = root.str_offsets_base ? root.str_offsets_base.value : 2 * width;
      if (root.producer.value > UINT32_MAX) return {};
      ByteReader entry(texts.str_offsets.view(base + root.producer.value * width, width));
      uint64_t offset = entry.sized(width);
      return entry.ok() ? texts.str.text(offset) : std::string_view();
    }
    default:
      return {};
  }
}

}  // namespace

ProducersEnd for_each_producer(ElfFile& file, uint32_t most_units,
                               const std::function<void(std::string_view)>& visit) {
  SectionBytes info = file.bytes(".debug_info");
  SectionBytes abbrevs = file.bytes(".debug_abbrev");
  if (!info || !abbrevs) return ProducersEnd::unreadable;
  Texts texts{file.bytes(".debug_str"), file.bytes(".debug_line_str"),
              file.bytes(".debug_str_offsets")};
  uint64_t released = 0;
  uint32_t seen = 0;
  for (uint64_t at = 0; at < info.size;) {
    auto header = read_unit_header(info, at);
    if (!header || header->end <= at)
      return seen == 0 ? ProducersEnd::unreadable : ProducersEnd::whole;
    if (++seen > most_units) return ProducersEnd::too_many;
    at = header->end;
    Root root;
    bool known = header->version >= 2 && header->version <= 5;
    if (known && read_root(info, abbrevs, *header, root)) {
      std::string_view text = text_of(root, *header, texts);
      if (!text.empty()) visit(text);
    }
    if (at - released > kScanWindowBytes) {
      info.source->release(info.offset + released, at - released);
      released = at;
    }
  }
  return ProducersEnd::whole;
}

}  // namespace assay::elf
