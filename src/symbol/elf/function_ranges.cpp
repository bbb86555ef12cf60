#include "symbol/elf/function_ranges.h"

#include <algorithm>
#include <unordered_map>

#include <elf.h>

#include "base/byte_reader.h"

namespace assay::symbol {
namespace {

// DW_EH_PE_*: how pointers are written in .eh_frame.
constexpr uint8_t kFormatMask = 0x0f, kBaseMask = 0x70, kPcRelative = 0x10;

// A pointer of `encoding`; nothing for forms that no x86-64 compiler emits here.
std::optional<uint64_t> read_pointer(ByteReader& cursor, uint8_t encoding,
                                     uint64_t section_address) {
  uint64_t here = section_address + cursor.offset();
  uint64_t value = 0;
  switch (encoding & kFormatMask) {
    case 0x00:
    case 0x04:
    case 0x0c:
      value = cursor.u64();
      break;
    case 0x01:
      value = cursor.uleb();
      break;
    case 0x02:
      value = cursor.u16();
      break;
    case 0x03:
      value = cursor.u32();
      break;
    case 0x09:
      value = static_cast<uint64_t>(cursor.sleb());
      break;
    case 0x0a:
      value = static_cast<uint64_t>(int64_t{cursor.fixed<int16_t>()});
      break;
    case 0x0b:
      value = static_cast<uint64_t>(int64_t{cursor.fixed<int32_t>()});
      break;
    default:
      return std::nullopt;
  }
  if (!cursor.ok()) return std::nullopt;
  switch (encoding & kBaseMask) {
    case 0:
      return value;
    case kPcRelative:
      return value + here;
    default:
      return std::nullopt;
  }
}

// The encoding of code addresses in a CIE's FDEs.
uint8_t pointer_encoding(ByteReader cursor) {
  uint8_t version = cursor.u8();
  std::string_view augmentation = cursor.text();
  if (!augmentation.starts_with("z")) return 0;
  cursor.uleb();
  cursor.sleb();
  if (version == 1) {
    cursor.u8();
  } else {
    cursor.uleb();
  }
  cursor.uleb();
  for (char c : augmentation.substr(1)) {
    if (c == 'R') return cursor.u8();
    if (c == 'L') cursor.u8();
    if (c == 'P') {
      uint8_t encoding = cursor.u8();
      if (!read_pointer(cursor, encoding & kFormatMask, 0)) return 0;
    }
  }
  return 0;
}

// Where .eh_frame lies when there are no section headers: .eh_frame_hdr, a segment of its own,
// says.
std::optional<uint64_t> eh_frame_from_header(ElfFile& file) {
  for (const auto& segment : file.segments()) {
    if (segment.type != PT_GNU_EH_FRAME) continue;
    ByteReader cursor(file.source().view(segment.offset, 64));
    cursor.u8();
    uint8_t encoding = cursor.u8();
    cursor.skip(2);
    return read_pointer(cursor, encoding, segment.address);
  }
  return std::nullopt;
}

}  // namespace

FunctionRanges::FunctionRanges(ElfFile& file) {
  const auto* section = file.find(".eh_frame");
  if (section != nullptr && section->has_bytes()) {
    read(file.bytes(*section).all(), section->address);
  } else if (auto address = eh_frame_from_header(file)) {
    for (const auto& segment : file.segments()) {
      if (segment.type != PT_LOAD || *address < segment.address) continue;
      uint64_t skip = *address - segment.address;
      if (skip >= segment.file_size) continue;
      read(file.source().view(segment.offset + skip, segment.file_size - skip), *address);
    }
  }
  std::sort(ranges_.begin(), ranges_.end(), [](const FunctionRange& a, const FunctionRange& b) {
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  });
}

void FunctionRanges::read(std::string_view bytes, uint64_t address) {
  std::unordered_map<uint64_t, uint8_t> encodings;  // by CIE offset
  ByteReader cursor(bytes);
  while (cursor.left() >= 4) {
    uint64_t length = cursor.u32();
    if (length == 0) break;
    if (length == 0xffffffff) length = cursor.u64();
    uint64_t body = cursor.offset();
    if (!cursor.ok() || length > cursor.left() || length < 4) break;
    uint32_t back = cursor.u32();  // 0: a CIE; else the distance back to this FDE's CIE
    if (back != 0 && back <= body) {
      uint64_t cie = body - back;
      auto [it, fresh] = encodings.try_emplace(cie, uint8_t{0});
      if (fresh) {
        ByteReader at(bytes, cie);
        if (at.u32() == 0xffffffff) at.skip(8);
        at.skip(4);
        it->second = pointer_encoding(at);
      }
      ByteReader fde(bytes.substr(0, body + length), cursor.offset());
      auto start = read_pointer(fde, it->second, address);
      auto size = read_pointer(fde, it->second & kFormatMask, address);
      if (start && size && *size > 0 && *start <= UINT64_MAX - *size) {
        ranges_.push_back({*start, *start + *size});
      }
    }
    cursor.seek(body + length);
  }
}

std::optional<FunctionRange> FunctionRanges::find(uint64_t address) const {
  auto it = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](uint64_t value, const FunctionRange& range) { return value < range.start; });
  if (it == ranges_.begin()) return std::nullopt;
  --it;
  if (address >= it->end) return std::nullopt;
  return *it;
}

}  // namespace assay::symbol
