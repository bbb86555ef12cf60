#include "unwind/arch_x86_64.h"

#include <algorithm>
#include <cstring>

#include <dwarf.h>

#include "base/byte_reader.h"

namespace assay::unwind {

namespace {

using Kind = RegisterRule::Kind;
using Bytes = std::span<const std::byte>;

// "*(reg + offset)", or with `dereferences` 0 "reg + offset".
struct Based {
  uint8_t reg = 0;
  int64_t offset = 0;
  int dereferences = 0;
};

std::optional<Based> parse_based(Bytes expression) {
  ByteReader in(expression);
  uint8_t op = in.u8();
  if (op < DW_OP_breg0 || op > DW_OP_breg31) return std::nullopt;
  Based based{static_cast<uint8_t>(op - DW_OP_breg0), in.sleb(), 0};
  if (in.left() > 0) {
    if (in.u8() != DW_OP_deref) return std::nullopt;
    based.dereferences = 1;
  }
  if (!in.ok() || in.left() != 0) return std::nullopt;
  return based;
}

// The linker's rule for its PLT: rsp + 8 + ((rip & 15) >= n ? 8 : 0). Gives n.
std::optional<uint32_t> parse_plt(Bytes expression) {
  constexpr uint8_t kPattern[] = {DW_OP_breg7, 8,         DW_OP_breg16, 0,
                                  DW_OP_lit15, DW_OP_and, DW_OP_lit0,   DW_OP_ge,
                                  DW_OP_lit3,  DW_OP_shl, DW_OP_plus};
  constexpr size_t kLimitAt = 6;
  if (expression.size() != std::size(kPattern)) return std::nullopt;
  uint32_t limit = 0;
  for (size_t i = 0; i < std::size(kPattern); ++i) {
    auto byte = static_cast<uint8_t>(expression[i]);
    if (i == kLimitAt) {
      if (byte < DW_OP_lit0 || byte > DW_OP_lit31) return std::nullopt;
      limit = byte - DW_OP_lit0;
    } else if (byte != kPattern[i]) {
      return std::nullopt;
    }
  }
  return limit;
}

bool is_kernel_signal_frame(const RuleSet& rules) {
  if (rules.cfa != RuleSet::Cfa::expression) return false;
  auto cfa = parse_based(rules.cfa_expression);
  if (!cfa || cfa->reg != X86_64::kSp || cfa->dereferences != 1 ||
      cfa->offset != X86_64::kSignalFrame[X86_64::kSp]) {
    return false;
  }
  for (int reg = 0; reg < X86_64::kRegisters; ++reg) {
    const RegisterRule& rule = rules.regs[reg];
    bool needed = reg == X86_64::kPc || reg == X86_64::kFp;
    if (rule.kind != Kind::expression) {
      if (needed) return false;
      continue;
    }
    auto at = parse_based(rule.expression);
    if (!at || at->reg != X86_64::kSp || at->dereferences != 0 ||
        at->offset != X86_64::kSignalFrame[reg]) {
      return false;
    }
  }
  return true;
}

// fp_slot for a rule relative to the CFA; nullopt when it does not fit.
std::optional<uint32_t> fp_slot(const RegisterRule& rule) {
  switch (rule.kind) {
    case Kind::unspecified:
    case Kind::same:
      return kFpSame;
    case Kind::undefined:
      return kFpLost;
    case Kind::offset: {
      if (rule.value % 8 != 0) return std::nullopt;
      int64_t slot = rule.value / -8 - 1;
      if (slot < 1 || slot > kMaxFpSlot) return std::nullopt;
      return static_cast<uint32_t>(slot);
    }
    default:
      return std::nullopt;
  }
}

std::optional<uint32_t> compact_expression(const RuleSet& rules) {
  const RegisterRule& fp = rules.regs[X86_64::kFp];
  if (auto limit = parse_plt(rules.cfa_expression)) {
    if (fp_slot(fp) != kFpSame) return std::nullopt;
    return Row::pack(RowType::plt, kFpSame, *limit);
  }
  auto based = parse_based(rules.cfa_expression);
  if (!based || based->reg != X86_64::kFp || based->dereferences != 1) return std::nullopt;
  if (based->offset % 8 != 0 || based->offset < -32768 * 8 || based->offset > 32767 * 8) {
    return std::nullopt;
  }
  uint32_t slot = kFpSame;
  if (fp.kind == Kind::expression) {
    auto at = parse_based(fp.expression);
    if (!at || at->reg != X86_64::kFp || at->offset != 0 || at->dereferences != 0)
      return std::nullopt;
    slot = 1;
  } else if (fp.kind != Kind::unspecified && fp.kind != Kind::same) {
    return std::nullopt;
  }
  return Row::pack(RowType::fp_memory, slot, static_cast<uint16_t>(based->offset / 8));
}

}  // namespace

std::optional<uint32_t> X86_64::compact(const RuleSet& rules, bool is_signal_frame) {
  const RegisterRule& pc = rules.regs[kPc];
  if (pc.kind == Kind::undefined) return Row::pack(RowType::end, 0, 0);
  if (is_signal_frame) {
    if (is_kernel_signal_frame(rules)) return Row::pack(RowType::signal, 0, 0);
    return std::nullopt;
  }
  if (pc.kind != Kind::offset || pc.value != -8) return std::nullopt;
  if (rules.regs[kSp].kind != Kind::unspecified &&
      !(rules.regs[kSp].kind == Kind::val_offset && rules.regs[kSp].value == 0)) {
    return std::nullopt;
  }
  if (rules.cfa == RuleSet::Cfa::expression) return compact_expression(rules);
  if (rules.cfa != RuleSet::Cfa::reg_offset) return std::nullopt;
  if (rules.cfa_reg != kSp && rules.cfa_reg != kFp) return std::nullopt;
  if (rules.cfa_offset % 8 != 0 || rules.cfa_offset <= 0 || rules.cfa_offset / 8 > 0xffff) {
    return std::nullopt;
  }
  auto slot = fp_slot(rules.regs[kFp]);
  if (!slot) return std::nullopt;
  return Row::pack(rules.cfa_reg == kSp ? RowType::sp : RowType::fp, *slot,
                   static_cast<uint32_t>(rules.cfa_offset / 8));
}

size_t X86_64::find_clone3(std::span<const std::byte> code) {
  // syscall; test %rax,%rax; jl …; je +1; ret
  constexpr uint8_t kSyscall[] = {0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c};
  constexpr uint8_t kReturn[] = {0x74, 0x01, 0xc3};
  if (code.size() < kClone3Bytes) return code.size();
  for (size_t at = 0; at + kClone3Bytes <= code.size(); ++at) {
    if (std::memcmp(code.data() + at, kSyscall, sizeof kSyscall) == 0 &&
        std::memcmp(code.data() + at + sizeof kSyscall + 1, kReturn, sizeof kReturn) == 0)
      return at;
  }
  return code.size();
}

size_t X86_64::find_sigreturn(std::span<const std::byte> code, size_t from) {
  constexpr uint8_t kCode[kSigreturnBytes] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  if (from >= code.size()) return code.size();
  const void* at = ::memmem(code.data() + from, code.size() - from, kCode, sizeof kCode);
  return at ? static_cast<size_t>(static_cast<const std::byte*>(at) - code.data()) : code.size();
}

}  // namespace assay::unwind
