// The walker's part for rules that four bytes cannot hold: any register, expressions. Rarely run.
#include <algorithm>

#include "unwind/arch_x86_64.h"
#include "unwind/walker.h"

namespace assay::unwind {

template <class Arch>
std::span<const std::byte> Walker<Arch>::expression(const TableView& table, int32_t at,
                                                    uint16_t bytes) const {
  return {reinterpret_cast<const std::byte*>(table.expressions) + at, bytes};
}

template <class Arch>
bool Walker<Arch>::apply_rule(const TableView& table, const RegRule& rule, uint64_t cfa,
                              Register& out) {
  uint64_t at = cfa + static_cast<uint64_t>(int64_t{rule.value});
  switch (rule.kind) {
    case RegKind::undefined:
      out = {State::lost, 0};
      return true;
    case RegKind::same:
      return true;
    case RegKind::at_cfa:
      out = {State::slot, at};
      return true;
    case RegKind::is_cfa:
      out = {State::value, at};
      return true;
    case RegKind::in_register:
      if (rule.value < 0 || rule.value >= Arch::kRegisters) return false;
      out = regs_[rule.value];
      if (out.state == State::sampled) {  // it moves to another register: the use counts now
        out_.registers_used |= 1u << rule.value;
        out.state = State::value;
      }
      if (rule.value == Arch::kSp) out = {State::value, sp_};
      if (rule.value == Arch::kPc) out = {State::value, pc_};
      return true;
    case RegKind::at_expression:
    case RegKind::is_expression: {
      auto value = evaluate(expression(table, rule.value, rule.expression_bytes), *this, cfa);
      if (!value) {
        out = {State::lost, 0};
        return true;
      }
      out = {rule.kind == RegKind::at_expression ? State::slot : State::value, *value};
      return true;
    }
  }
  return false;
}

// Turns the registers of this frame into its caller's: rules speak of the registers before the
// step.
template <class Arch>
void Walker<Arch>::apply(const TableView& table, RuleSpan rules, uint64_t cfa) {
  Register next[Arch::kRegisters] = {};
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    if (Arch::kCalleeSaved >> reg & 1) next[reg] = regs_[reg];
  }
  for (uint32_t i = 0; i < rules.count; ++i) {
    const RegRule& rule = table.reg_rules[rules.first + i];
    if (rule.reg >= Arch::kRegisters) continue;
    if (rule.kind == RegKind::same)
      next[rule.reg] = regs_[rule.reg];
    else if (!apply_rule(table, rule, cfa, next[rule.reg]))
      next[rule.reg] = {State::lost, 0};
  }
  std::copy(std::begin(next), std::end(next), std::begin(regs_));
}

template <class Arch>
void Walker<Arch>::apply_saved(const TableView& table, uint32_t row_number, uint64_t cfa) {
  uint16_t set = table.saved[row_number];
  if (set < table.header->saved_set_count) return apply(table, table.saved_sets[set], cfa);
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    if (reg != Arch::kFp) regs_[reg] = {State::lost, 0};
  }
}

template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::step_full(const TableView& table, Row row) {
  if (row.cfa() >= table.header->full_rule_count) return stop(End::no_unwind_info);
  const FullRule& rule = table.full_rules[row.cfa()];
  uint64_t cfa = 0;
  end_ = End::no_unwind_info;  // unless a register or memory it needs says more
  if (rule.cfa_is_expression) {
    auto bytes = expression(table, rule.cfa_value, rule.expression_bytes);
    auto value = evaluate(bytes, *this, std::nullopt);
    if (!value) return Step::stop;
    cfa = *value;
  } else {
    if (!read_register(rule.cfa_reg, cfa)) return Step::stop;
    cfa += static_cast<uint64_t>(int64_t{rule.cfa_value});
  }
  bool is_signal = rule.is_signal_frame != 0;
  regs_[Arch::kPc] = {State::lost, 0};
  regs_[Arch::kSp] = {State::value, sp_};
  bool has_sp = false, has_pc = false;
  for (uint32_t i = 0; i < rule.regs.count; ++i) {
    const RegRule& r = table.reg_rules[rule.regs.first + i];
    has_sp = has_sp || r.reg == Arch::kSp;
    has_pc = has_pc || r.reg == Arch::kPc;
    if (r.reg == Arch::kPc && r.kind == RegKind::undefined) return stop(End::complete);
  }
  if (!has_pc) return stop(End::no_unwind_info);
  apply(table, rule.regs, cfa);
  uint64_t pc = 0, sp = cfa;
  end_ = End::no_unwind_info;
  if (!fetch(Arch::kPc, pc)) return Step::stop;
  if (has_sp && !fetch(Arch::kSp, sp)) return Step::stop;
  if (is_signal) {
    scratch_.frames[frames_ - 1].is_return_address = false;
  } else {
    if (sp <= sp_) return stop(End::bad_memory);
    if (pc == 0) return stop(End::complete);
  }
  return arrive(pc, sp, !is_signal, true);
}

template void Walker<X86_64>::apply_saved(const TableView&, uint32_t, uint64_t);
template Walker<X86_64>::Step Walker<X86_64>::step_full(const TableView&, Row);

}  // namespace assay::unwind
