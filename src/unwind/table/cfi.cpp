#include "unwind/table/cfi.h"

#include <algorithm>

#include <dwarf.h>

#include "base/byte_reader.h"

namespace assay::unwind {

namespace {

constexpr size_t kMaxRememberedStates = 64;
constexpr size_t kMaxCies = 65536;
constexpr uint8_t kPeOmit = 0xff, kPeIndirect = 0x80;

// A length field: 4 bytes, or 0xffffffff and 8 bytes. Returns the bytes after it.
struct EntryLength {
  uint64_t bytes = 0;
  bool is_64 = false;
};

EntryLength read_length(ByteReader& reader) {
  EntryLength length{reader.u32(), false};
  if (length.bytes == 0xffffffff) length = {reader.u64(), true};
  return length;
}

}  // namespace

bool Cfi::read_pointer(ByteReader& reader, uint8_t encoding, uint64_t& out) const {
  if (encoding == kPeOmit || (encoding & kPeIndirect)) return false;
  uint64_t base = 0;
  switch (encoding & 0x70) {
    case DW_EH_PE_absptr:
      break;
    case DW_EH_PE_pcrel:
      base = vaddr_ + reader.offset();
      break;
    case DW_EH_PE_datarel:
      base = data_base_;
      break;
    default:
      return false;
  }
  switch (encoding & 0x0f) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      out = reader.u64();
      break;
    case DW_EH_PE_uleb128:
      out = reader.uleb();
      break;
    case DW_EH_PE_udata2:
      out = reader.u16();
      break;
    case DW_EH_PE_udata4:
      out = reader.u32();
      break;
    case DW_EH_PE_sleb128:
      out = static_cast<uint64_t>(reader.sleb());
      break;
    case DW_EH_PE_sdata2:
      out = static_cast<uint64_t>(int64_t{reader.fixed<int16_t>()});
      break;
    case DW_EH_PE_sdata4:
      out = static_cast<uint64_t>(int64_t{reader.fixed<int32_t>()});
      break;
    default:
      return false;
  }
  out += base;
  return reader.ok();
}

Cfi Cfi::read(std::span<const std::byte> section, uint64_t section_vaddr, Format format,
              uint64_t data_base) {
  Cfi cfi;
  cfi.section_ = section;
  cfi.vaddr_ = section_vaddr;
  cfi.data_base_ = data_base;
  cfi.format_ = format;
  ByteReader reader(section);
  while (reader.left() >= 4) {
    size_t start = reader.offset();
    EntryLength length = read_length(reader);
    if (length.bytes == 0) continue;  // a terminator; linkers leave some in the middle
    size_t body = reader.offset();
    if (!reader.ok() || length.bytes > reader.left()) break;
    ByteReader entry(section.first(body + length.bytes), body);
    cfi.read_entry(start, entry);
    reader.seek(body + length.bytes);
  }
  return cfi;
}

void Cfi::read_entry(size_t start, ByteReader& reader) {
  size_t id_at = reader.offset();
  bool is_64 = id_at - start == 12;
  uint64_t id = is_64 && format_ == Format::debug_frame ? reader.u64() : reader.u32();
  uint64_t cie_id = format_ == Format::eh_frame ? 0 : (is_64 ? ~uint64_t{0} : 0xffffffff);
  if (!reader.ok() || id == cie_id) return;  // CIEs are parsed when an FDE names them
  if (format_ == Format::eh_frame && id > id_at) return;
  uint64_t cie_offset = format_ == Format::eh_frame ? id_at - id : id;
  if (cie_offset >= section_.size()) return;

  Fde fde;
  const Cie* found = cie_at(cie_offset, fde.cie);
  if (!found || !found->usable) return;
  const Cie& cie = *found;
  uint64_t bytes = 0;
  if (!read_pointer(reader, cie.pointer_encoding, fde.begin)) return;
  // The length has the pointer's size but no base.
  if (!read_pointer(reader, cie.pointer_encoding & 0x0f, bytes)) return;
  if (cie.has_augmentation_data) reader.take(reader.uleb());
  if (!reader.ok() || bytes == 0 || fde.begin > UINT64_MAX - bytes) return;
  fde.end = fde.begin + bytes;
  fde.program = reader.offset();
  fde.program_bytes = reader.left();
  fdes_.push_back(fde);
}

const Cfi::Cie* Cfi::cie_at(size_t offset, uint32_t& number) {
  auto [at, is_new] = cie_by_offset_.try_emplace(offset, static_cast<uint32_t>(cies_.size()));
  if (is_new) {
    if (cies_.size() >= kMaxCies) {
      cie_by_offset_.erase(at);
      return nullptr;
    }
    cies_.push_back(parse_cie(offset));
  }
  number = at->second;
  return &cies_[number];
}

// One run of a CIE's and an FDE's instructions.
class Cfi::Program {
 public:
  Program(const Cfi& cfi, const Cie& cie) : cfi_(cfi), cie_(cie), rules_(cie.initial) {}

  // A CIE's instructions: no addresses, they set what every function begins with.
  bool run_initial(size_t program, size_t bytes, Cie& out) {
    location_ = 0, end_ = 1;
    bool good = execute(program, bytes);
    out.initial = rules_;
    return good;
  }

  void run(const Fde& fde, const RowSink& row) {
    location_ = fde.begin, end_ = fde.end;
    row_ = &row;
    bool good = execute(fde.program, fde.program_bytes);
    if (location_ < end_) row(location_, good ? &rules_ : nullptr);
  }

 private:
  bool execute(size_t program, size_t bytes) {
    ByteReader in(cfi_.section_.first(program + bytes), program);
    while (!in.at_end()) {
      uint8_t op = in.u8();
      uint8_t low = op & 0x3f;
      bool good = true;
      switch (op & 0xc0) {
        case DW_CFA_advance_loc:
          good = advance(low);
          break;
        case DW_CFA_offset:
          set(low, RegisterRule::Kind::offset, factored(in.uleb()));
          break;
        case DW_CFA_restore:
          restore(low);
          break;
        default:
          good = extended(op, in);
      }
      if (!good || !in.ok()) return false;
      if (location_ >= end_) return true;
    }
    return in.ok();
  }

  bool extended(uint8_t op, ByteReader& in) {
    using Kind = RegisterRule::Kind;
    switch (op) {
      case DW_CFA_nop:
        return true;
      case DW_CFA_set_loc:
        return set_location(in);
      case DW_CFA_advance_loc1:
        return advance(in.u8());
      case DW_CFA_advance_loc2:
        return advance(in.u16());
      case DW_CFA_advance_loc4:
        return advance(in.u32());
      case DW_CFA_restore_extended:
        restore(in.uleb());
        return true;
      case DW_CFA_undefined:
        set(in.uleb(), Kind::undefined, 0);
        return true;
      case DW_CFA_same_value:
        set(in.uleb(), Kind::same, 0);
        return true;
      case DW_CFA_remember_state:
        if (remembered_.size() >= kMaxRememberedStates) return false;
        remembered_.push_back(rules_);
        return true;
      case DW_CFA_restore_state:
        return restore_state();
      case DW_CFA_GNU_args_size:
        in.uleb();
        return true;
      case DW_CFA_expression:
      case DW_CFA_val_expression: {
        uint64_t reg = in.uleb();
        auto bytes = in.take(in.uleb());
        set(reg, op == DW_CFA_expression ? Kind::expression : Kind::val_expression, 0, bytes);
        return true;
      }
      case DW_CFA_def_cfa:
      case DW_CFA_def_cfa_sf:
      case DW_CFA_def_cfa_register:
      case DW_CFA_def_cfa_offset:
      case DW_CFA_def_cfa_offset_sf:
      case DW_CFA_def_cfa_expression:
        return define_cfa(op, in);
      default:
        return register_rule(op, in);
    }
  }

  bool register_rule(uint8_t op, ByteReader& in) {
    using Kind = RegisterRule::Kind;
    uint64_t reg = in.uleb();
    switch (op) {
      case DW_CFA_offset_extended:
        set(reg, Kind::offset, factored(in.uleb()));
        return true;
      case DW_CFA_offset_extended_sf:
        set(reg, Kind::offset, factored(in.sleb()));
        return true;
      case DW_CFA_GNU_negative_offset_extended:
        set(reg, Kind::offset, factored(-in.uleb()));
        return true;
      case DW_CFA_val_offset:
        set(reg, Kind::val_offset, factored(in.uleb()));
        return true;
      case DW_CFA_val_offset_sf:
        set(reg, Kind::val_offset, factored(in.sleb()));
        return true;
      case DW_CFA_register:
        set(reg, Kind::in_register, static_cast<int64_t>(in.uleb()));
        return true;
      default:
        return false;
    }
  }

  bool define_cfa(uint8_t op, ByteReader& in) {
    using Cfa = RuleSet::Cfa;
    if (op == DW_CFA_def_cfa_expression) {
      rules_.cfa = Cfa::expression;
      rules_.cfa_expression = in.take(in.uleb());
      return true;
    }
    bool names_register = op != DW_CFA_def_cfa_offset && op != DW_CFA_def_cfa_offset_sf;
    // Changing half of a rule needs the other half to be there.
    if (op != DW_CFA_def_cfa && op != DW_CFA_def_cfa_sf && rules_.cfa != Cfa::reg_offset)
      return false;
    if (names_register) rules_.cfa_reg = in.uleb();
    if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_offset) {
      rules_.cfa_offset = static_cast<int64_t>(in.uleb());
    } else if (op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_offset_sf) {
      rules_.cfa_offset = factored(in.sleb());
    }
    rules_.cfa = Cfa::reg_offset;
    return true;
  }

  bool restore_state() {
    if (remembered_.empty()) return false;
    uint32_t version = std::max(rules_.version, remembered_.back().version);
    rules_ = remembered_.back();
    rules_.version = version + 1;
    remembered_.pop_back();
    return true;
  }

  template <class Int>
  int64_t factored(Int n) const {
    return static_cast<int64_t>(static_cast<uint64_t>(n) * static_cast<uint64_t>(cie_.data_align));
  }

  // Moves on; what was gathered holds from here to there. Going nowhere is fine, backwards is not.
  bool advance_to(uint64_t to) {
    if (to < location_) return false;
    if (to == location_) return true;
    if (!row_) return false;  // a CIE has no addresses
    (*row_)(location_, &rules_);
    location_ = std::min(to, end_);
    return true;
  }
  bool advance(uint64_t count) {
    uint64_t delta = 0;
    if (__builtin_mul_overflow(count, cie_.code_align, &delta)) return false;
    if (delta > end_ - location_) delta = end_ - location_;
    return advance_to(location_ + delta);
  }
  bool set_location(ByteReader& in) {
    uint64_t to = 0;
    return cfi_.read_pointer(in, cie_.pointer_encoding, to) && advance_to(to);
  }

  // Rules of registers that no CFA and no caller needs (vector registers) are read and dropped.
  void set(uint64_t reg, RegisterRule::Kind kind, int64_t value,
           std::span<const std::byte> expression = {}) {
    if (reg >= kCfiRegisters) return;
    rules_.regs[reg] = {kind, value, expression};
    ++rules_.version;
  }
  void restore(uint64_t reg) {
    if (reg >= kCfiRegisters) return;
    rules_.regs[reg] = cie_.initial.regs[reg];
    ++rules_.version;
  }

  const Cfi& cfi_;
  const Cie& cie_;
  const RowSink* row_ = nullptr;
  uint64_t location_ = 0, end_ = 0;
  RuleSet rules_;
  std::vector<RuleSet> remembered_;
};

Cfi::Cie Cfi::parse_cie(size_t offset) const {
  Cie cie;
  ByteReader outer(section_, offset);
  EntryLength length = read_length(outer);
  size_t body = outer.offset();
  if (!outer.ok() || length.bytes > outer.left()) return cie;
  ByteReader reader(section_.first(body + length.bytes), body);
  bool wide = length.is_64 && format_ == Format::debug_frame;
  uint64_t id = wide ? reader.u64() : reader.u32();
  uint64_t cie_id = format_ == Format::eh_frame ? 0 : (wide ? ~uint64_t{0} : 0xffffffff);
  uint8_t version = reader.u8();
  if (!reader.ok() || id != cie_id || (version != 1 && version != 3 && version != 4)) return cie;

  char augmentation[9] = {};
  for (size_t i = 0;; ++i) {
    char c = static_cast<char>(reader.u8());
    if (!reader.ok()) return cie;
    if (c == 0) break;
    if (i >= 8) return cie;
    augmentation[i] = c;
  }
  if (version == 4) {
    uint8_t address_bytes = reader.u8(), segment_bytes = reader.u8();
    if (address_bytes != 8 || segment_bytes != 0) return cie;
  }
  cie.code_align = reader.uleb();
  cie.data_align = reader.sleb();
  cie.return_register = version == 1 ? reader.u8() : reader.uleb();
  cie.pointer_encoding = DW_EH_PE_absptr;
  if (augmentation[0] == 'z') {
    cie.has_augmentation_data = true;
    auto data_bytes = reader.uleb();
    if (reader.left() < data_bytes) return cie;
    size_t data_end = reader.offset() + data_bytes;
    for (const char* c = augmentation + 1; *c; ++c) {
      uint64_t ignored = 0;
      if (*c == 'R')
        cie.pointer_encoding = reader.u8();
      else if (*c == 'S')
        cie.is_signal_frame = true;
      else if (*c == 'L')
        reader.u8();
      else if (*c == 'P')
        read_pointer(reader, reader.u8() & 0x7f, ignored);
      else if (*c != 'B')
        return cie;
    }
    reader.seek(data_end);
  } else if (augmentation[0] != 0) {
    return cie;
  }
  cie.usable = reader.ok() && Program(*this, cie).run_initial(reader.offset(), reader.left(), cie);
  return cie;
}

void Cfi::run(const Fde& fde, const RowSink& row) const {
  Program(*this, cie(fde)).run(fde, row);
}

}  // namespace assay::unwind
