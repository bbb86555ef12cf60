#include "unwind/walker.h"

#include <algorithm>

#include "unwind/arch_x86_64.h"

namespace assay::unwind {

namespace {

// Further above the copy than this, an address is not taken for the rest of the same stack.
constexpr uint64_t kMaxStackBytes = uint64_t{1} << 28;
// Nothing is mapped in the first page: a program counter there is a call through a null pointer.
constexpr uint64_t kNullPage = 4096;

}  // namespace

template <class Arch>
bool Walker<Arch>::load(uint64_t address, uint64_t& value) {
  uint64_t offset = address - base_;
  if (raw_.copy.size() >= 8 && offset <= raw_.copy.size() - 8) [[likely]] {
    std::memcpy(&value, raw_.copy.data() + offset, 8);
    out_.words.push_back({static_cast<uint32_t>(offset), value});
    highest_ = std::max(highest_, offset + 8);
    return true;
  }
  if (offset < kMaxStackBytes) {
    end_ = End::copy_too_short;
    highest_ = std::max(highest_, offset + 8);
  } else {
    end_ = End::bad_memory;
  }
  return false;
}

template <class Arch>
bool Walker<Arch>::fetch(int reg, uint64_t& value) {
  Register& r = regs_[reg];
  switch (r.state) {
    case State::sampled:
      out_.registers_used |= 1u << reg;
      value = r.bits;
      return true;
    case State::value:
      value = r.bits;
      return true;
    case State::slot:
      if (!load(r.bits, value)) return false;
      r = {State::value, value};
      return true;
    case State::lost:
      break;
  }
  end_ = End::register_unknown;
  return false;
}

template <class Arch>
bool Walker<Arch>::read_register(uint64_t reg, uint64_t& value) {
  if (reg == Arch::kPc) return value = pc_, true;
  if (reg == Arch::kSp) return value = sp_, true;
  if (reg >= Arch::kRegisters) return false;
  return fetch(static_cast<int>(reg), value);
}

template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::arrive(uint64_t pc, uint64_t sp, bool is_return_address) {
  pc_ = pc, sp_ = sp, is_return_ = is_return_address;
  if (out_.stack.frames.size() >= kMaxFrames) return stop(End::too_deep);
  out_.stack.frames.push_back({pc, is_return_address});
  out_.sps.push_back(sp);
  return Step::next;
}

template <class Arch>
void Walker<Arch>::begin() {
  out_.clear();
  out_.registers = raw_.registers;
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    bool known = raw_.registers.has(reg);
    regs_[reg] = {known ? State::sampled : State::lost, raw_.registers.value[reg]};
  }
  end_ = End::complete;
  highest_ = 0;
  arrive(raw_.registers.value[Arch::kPc], base_, false);
}

template <class Arch>
void Walker<Arch>::run() {
  if (!raw_.registers.has(Arch::kPc)) {
    out_.clear();
    end_ = End::register_unknown;
  } else {
    begin();
    if (!raw_.registers.has(Arch::kSp)) {
      end_ = End::register_unknown;
    } else {
      walk<false>();
      if (needs_all_) {
        begin();
        walk<true>();
      }
    }
  }
  out_.stack.end = end_;
  out_.stack.copy_needed = static_cast<uint32_t>(highest_);
}

template <class Arch>
template <bool kAll>
void Walker<Arch>::walk() {
  for (;;) {
    uint64_t at = pc_ - is_return_;
    const CodeRange* range = code_.find(at);
    const TableView* table = range ? range->table : nullptr;
    uint32_t row_number = 0;
    Row row{kNoCfi};
    if (table) [[likely]] {
      row_number = table->find(at + range->to_text);
      if (row_number < table->header->row_count) row = table->rows[row_number];
    } else if (at >= Arch::kVsyscallBegin && at < Arch::kVsyscallEnd) {
      row.bits = Arch::kVsyscallRow;
    }
    if (step<kAll>(range, table, row_number, row) == Step::stop) return;
  }
}

template <class Arch>
template <bool kAll>
typename Walker<Arch>::Step Walker<Arch>::step(const CodeRange* range, const TableView* table,
                                               uint32_t row_number, Row row) {
  uint64_t fp = 0, cfa = 0;
  switch (row.type()) {
    case RowType::sp:
      cfa = sp_ + row.cfa() * 8;
      break;
    case RowType::fp:
      if (!fetch(Arch::kFp, fp)) return Step::stop;
      cfa = fp + row.cfa() * 8;
      break;
    case RowType::plt:
      cfa = sp_ + ((pc_ & 15) >= row.cfa() ? 16 : 8);
      break;
    case RowType::fp_memory:
      if (!fetch(Arch::kFp, fp)) return Step::stop;
      if (!load(fp + static_cast<uint64_t>(int64_t{row.signed_cfa()} * 8), cfa)) return Step::stop;
      break;
    case RowType::end:
      return stop(End::complete);
    case RowType::signal:
      return step_signal<kAll>();
    case RowType::none:
      if (row.cfa() != 0) return stop(End::no_unwind_info);
      return step_frame_pointer(range);
    case RowType::full:
      if constexpr (kAll) return step_full(*table, row);
      needs_all_ = true;
      return Step::stop;
  }
  if (row.type() == RowType::fp_memory && row.fp_slot() == 1) {
    // The slot is named by fp itself here, not by the CFA.
    if (leave<kAll>(cfa, table, row_number, Row{Row::pack(RowType::sp, kFpSame, 0)}) ==
        Step::stop) {
      return Step::stop;
    }
    regs_[Arch::kFp] = {State::slot, fp};
    return Step::next;
  }
  return leave<kAll>(cfa, table, row_number, row);
}

template <class Arch>
template <bool kAll>
typename Walker<Arch>::Step Walker<Arch>::leave(uint64_t cfa, const TableView* table,
                                                uint32_t row_number, Row row) {
  if (cfa <= sp_) return stop(End::bad_memory);  // a stack that does not unwind would never end
  uint64_t pc = 0;
  if (!load(cfa - 8, pc)) return Step::stop;
  if constexpr (kAll) {
    if (table) apply_saved(*table, row_number, cfa);
  }
  uint32_t slot = row.fp_slot();
  if (slot >= 1 && slot <= kMaxFpSlot)
    regs_[Arch::kFp] = {State::slot, cfa - 8 * (slot + 1)};
  else if (slot != kFpSame)
    regs_[Arch::kFp] = {State::lost, 0};
  if (pc == 0) return stop(End::complete);
  return arrive(pc, cfa, true);
}

template <class Arch>
template <bool kAll>
typename Walker<Arch>::Step Walker<Arch>::step_signal() {
  uint64_t pc = 0, sp = 0;
  if (!load(sp_ + Arch::kSignalFrame[Arch::kPc], pc)) return Step::stop;
  if (!load(sp_ + Arch::kSignalFrame[Arch::kSp], sp)) return Step::stop;
  // The restorer was never called: its own address names it, not the byte before.
  out_.stack.frames.back().is_return_address = false;
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    if (kAll || reg == Arch::kFp) regs_[reg] = {State::slot, sp_ + Arch::kSignalFrame[reg]};
  }
  return arrive(pc, sp, false);
}

// No call-frame information: the convention that fp points at the caller's fp and the return
// address. Applied only when all of it is plausible; the stack is marked.
template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::step_frame_pointer(const CodeRange* range) {
  bool is_mapped = range != nullptr;
  if (!is_mapped && !is_return_ && pc_ < kNullPage) return step_popped_call();
  uint64_t fp = 0, pc = 0;
  if (!fetch(Arch::kFp, fp)) {
    bool was_sampled = raw_.registers.has(Arch::kFp);
    return stop(end_ == End::register_unknown && was_sampled ? End::no_unwind_info : end_);
  }
  if (fp == 0 && is_return_) {  // the outermost frame of code with frame pointers
    out_.stack.used_frame_pointers = true;
    return stop(End::complete);
  }
  if (fp < sp_ || fp % 8 != 0) {
    return !is_mapped && !is_return_ ? step_popped_call() : stop(End::no_unwind_info);
  }
  if (!load(fp + 8, pc)) {
    return stop(end_ == End::bad_memory ? End::no_unwind_info : end_);
  }
  if (pc != 0 && !code_.find(pc - 1)) {
    return !is_mapped && !is_return_ ? step_popped_call() : stop(End::no_unwind_info);
  }
  out_.stack.used_frame_pointers = true;
  for (Register& r : regs_) r = {State::lost, 0};
  regs_[Arch::kFp] = {State::slot, fp};
  if (pc == 0) return stop(End::complete);
  return arrive(pc, fp + 16, true);
}

// A call to where no code is has pushed its return address and done nothing else.
template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::step_popped_call() {
  uint64_t pc = 0;
  if (!load(sp_, pc)) return Step::stop;
  if (!code_.find(pc - 1)) return stop(End::no_unwind_info);
  out_.stack.popped_call = true;
  return arrive(pc, sp_ + 8, true);
}

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
  Register next[Arch::kRegisters];
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
    out_.stack.frames.back().is_return_address = false;
  } else {
    if (sp <= sp_) return stop(End::bad_memory);
    if (pc == 0) return stop(End::complete);
  }
  return arrive(pc, sp, !is_signal);
}

template class Walker<X86_64>;

}  // namespace assay::unwind
