// SyntheticStack: a stack made word by word over synthetic code, for the tests of this room.
#pragma once

#include <cstring>
#include <vector>

#include "model/address_space.h"
#include "unwind/testing/elf_maker.h"
#include "unwind/unwinder.h"

namespace assay::unwind::testing {

class SyntheticStack {
 public:
  static constexpr uint64_t kSp = 0x7ffe00001000;

  SyntheticStack(uint64_t pc, size_t words) : copy_(words * 8) {
    registers_.set(model::kRegRip, pc);
    registers_.set(model::kRegRsp, kSp);
    registers_.set(model::kRegRbp, 0x1234);
  }
  // The word `index` words above the stack pointer.
  SyntheticStack& word(size_t index, uint64_t value) {
    std::memcpy(copy_.data() + index * 8, &value, 8);
    return *this;
  }
  SyntheticStack& reg(int number, uint64_t value) {
    registers_.set(number, value);
    return *this;
  }
  SyntheticStack& forget(int number) {
    registers_.known &= ~(1u << number);
    return *this;
  }
  SyntheticStack& chain(std::vector<uint64_t> pcs) {
    chain_ = std::move(pcs);
    return *this;
  }
  static uint64_t address(size_t index) { return kSp + index * 8; }

  RawStack raw(pid_t tid = 1) const { return {1, tid, registers_, copy_, chain_}; }
  RawStack raw_first(size_t words, pid_t tid = 1) const {
    return {1, tid, registers_, std::span(copy_).first(words * 8), chain_};
  }

 private:
  model::UserRegisters registers_;
  std::vector<std::byte> copy_;
  std::vector<uint64_t> chain_;
};

// Code at kCode with one rule per 16 bytes, in this order; return addresses are `at(rule)`.
enum class Rule {
  leaf8,
  frame32,
  fp16,
  plt,
  root,
  rbx24,
  saves_rbx,
  signal,
  align,
  none,
  after_none,
  garbage,
  expression,
  val_expression,
  ra_register,
  count
};

class SyntheticCode {
 public:
  static constexpr uint64_t kCode = 0x401000;
  static uint64_t at(Rule rule) { return kCode + static_cast<uint64_t>(rule) * 16 + 8; }

  static Bytes elf() {
    CfiMaker plain;
    auto fde = [&](Rule rule, const Bytes& program) { plain.fde(at(rule) - 8, 16, program); };
    fde(Rule::leaf8, {});
    fde(Rule::frame32, make_bytes({DW_CFA_def_cfa_offset, 32}));
    fde(Rule::fp16, make_bytes({DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}));
    fde(Rule::plt,
        make_bytes({DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
                    DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus}));
    fde(Rule::root, make_bytes({DW_CFA_undefined, 16}));
    fde(Rule::rbx24, make_bytes({DW_CFA_def_cfa, 3, 24, DW_CFA_offset | 3, 2}));
    fde(Rule::saves_rbx, make_bytes({DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 3, 2}));
    fde(Rule::align, make_bytes({DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_def_cfa_expression,
                                 3, DW_OP_breg6, 0x78, DW_OP_deref}));
    fde(Rule::after_none, {});
    fde(Rule::garbage, make_bytes({0x3f}));
    // CFA = rsp + 8 · 2, by an expression no row knows.
    fde(Rule::expression, make_bytes({DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0, DW_OP_lit2,
                                      DW_OP_lit8, DW_OP_mul, DW_OP_plus}));
    // The caller's rbx is the CFA plus 32.
    fde(Rule::val_expression, make_bytes({DW_CFA_val_expression, 3, 2, DW_OP_plus_uconst, 32}));
    fde(Rule::ra_register, make_bytes({DW_CFA_register, 16, 1}));
    Bytes program =
        make_bytes({DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 0x01, DW_OP_deref});
    for (auto [reg, offset] : {std::pair{6, 120}, {16, 168}, {3, 128}}) {
      auto more =
          make_bytes({DW_CFA_expression, reg, 3, DW_OP_breg7, (offset & 0x7f) | 0x80, offset >> 7});
      program.insert(program.end(), more.begin(), more.end());
    }
    CfiMaker signal(true);
    signal.fde(at(Rule::signal) - 9, 16, program);  // begins a byte early, as glibc's does
    ByteWriter section;
    Bytes first = plain.section(), second = signal.section();
    section.raw(first).raw(second);  // CIE pointers are relative, so sections can be joined
    size_t text_bytes = static_cast<size_t>(Rule::count) * 16;
    return make_elf(kCode, Bytes(text_bytes), {{".eh_frame", 0x500000, section.bytes}});
  }
  static model::Mapping mapping(model::ModuleId module = {0}) {
    return {kCode, kCode + static_cast<uint64_t>(Rule::count) * 16, 0x1000, module};
  }
};

}  // namespace assay::unwind::testing
