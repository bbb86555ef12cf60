// Cfi: the call-frame information of one .eh_frame or .debug_frame section, entry by entry.
//
// In: the section's bytes and address; out: for each function range (FDE) the rules that hold at
// each address. Our own interpreter rather than libdw's, because a whole module is decoded at once
// (libdw searches per address) and because every byte is hostile: all reads are bounded, a
// malformed entry ends that entry only. Expressions are handed on as spans into the section.
// Threads: const after read(). The section's bytes must outlive it.
// Follows DWARF 5 §6.4 and the LSB's .eh_frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/byte_reader.h"

namespace assay::unwind {

inline constexpr int kCfiRegisters = 17;  // x86-64: 16 general registers and the return address

struct RegisterRule {
  enum class Kind : uint8_t {
    unspecified,
    undefined,
    same,
    offset,
    val_offset,
    in_register,
    expression,
    val_expression
  };
  Kind kind = Kind::unspecified;
  int64_t value = 0;  // offset, or register number
  std::span<const std::byte> expression;
};

struct RuleSet {
  enum class Cfa : uint8_t { none, reg_offset, expression };
  Cfa cfa = Cfa::none;
  uint64_t cfa_reg = 0;
  int64_t cfa_offset = 0;
  std::span<const std::byte> cfa_expression;
  std::array<RegisterRule, kCfiRegisters> regs;
  uint32_t version = 0;  // changes whenever a register's rule does
};

class Cfi {
 public:
  enum class Format { eh_frame, debug_frame };

  struct Fde {
    uint64_t begin = 0, end = 0;  // virtual addresses
    size_t program = 0, program_bytes = 0;
    uint32_t cie = 0;
  };
  struct Cie {
    uint64_t code_align = 1;
    int64_t data_align = 1;
    uint64_t return_register = 0;
    uint8_t pointer_encoding = 0;
    bool has_augmentation_data = false;
    bool is_signal_frame = false;
    bool usable = false;
    RuleSet initial;  // what its own instructions set
  };

  // Reads every entry; `data_base` resolves data-relative pointers (.eh_frame_hdr's address, or 0).
  static Cfi read(std::span<const std::byte> section, uint64_t section_vaddr, Format format,
                  uint64_t data_base = 0);

  const std::vector<Fde>& fdes() const { return fdes_; }
  const Cie& cie(const Fde& fde) const { return cies_[fde.cie]; }

  // Calls `row(begin, rules)` at each address of [fde.begin, fde.end) from which `rules` hold,
  // upwards; null rules: what is there cannot be understood.
  using RowSink = std::function<void(uint64_t begin, const RuleSet* rules)>;
  void run(const Fde& fde, const RowSink& row) const;

 private:
  class Program;
  void read_entry(size_t start, ByteReader& reader);
  const Cie* cie_at(size_t offset, uint32_t& number);
  Cie parse_cie(size_t offset) const;
  bool read_pointer(ByteReader& reader, uint8_t encoding, uint64_t& out) const;

  std::span<const std::byte> section_;
  uint64_t vaddr_ = 0, data_base_ = 0;
  Format format_ = Format::eh_frame;
  std::vector<Cie> cies_;
  std::unordered_map<size_t, uint32_t> cie_by_offset_;
  std::vector<Fde> fdes_;
};

}  // namespace assay::unwind
