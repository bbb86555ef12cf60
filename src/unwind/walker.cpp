#include "unwind/walker.h"

#include <algorithm>

#include "unwind/arch_x86_64.h"

namespace assay::unwind {

namespace {

// Further above the copy than this, an address is not taken for the rest of the same stack.
constexpr uint64_t kMaxStackBytes = uint64_t{1} << 28;
// Nothing is mapped in the first page: a program counter there is a call through a null pointer.
constexpr uint64_t kNullPage = 4096;
// The kernel's signal frame and the red zone below what it interrupts: on the same stack an
// interrupted stack pointer is nearer than this. (Vector state makes a frame some 3 to 11 KB.)
constexpr uint64_t kMaxSignalFrameBytes = uint64_t{1} << 16;
// The row of an address where no code is mapped; tables have no such row.
constexpr uint32_t kUnmapped = Row::pack(RowType::none, 1, 0);

}  // namespace

// Reads the copy. A return address just below the new stack pointer is peeked at: arriving there
// notes it. Everything else is loaded, which notes the word.
template <class Arch>
bool Walker<Arch>::peek(uint64_t address, uint64_t& value) {
  uint64_t offset = address - base_;
  if (raw_.copy.size() >= 8 && offset <= raw_.copy.size() - 8) [[likely]] {
    std::memcpy(&value, raw_.copy.data() + offset, 8);
    highest_ = std::max(highest_, offset + 8);
    return true;
  }
  if (left_stack_) {
    end_ = End::other_stack;
  } else if (offset < kMaxStackBytes) {
    end_ = End::copy_too_short;
    highest_ = std::max(highest_, offset + 8);
  } else {
    end_ = End::bad_memory;
  }
  return false;
}

template <class Arch>
bool Walker<Arch>::load(uint64_t address, uint64_t& value) {
  if (!peek(address, value)) return false;
  if (words_ == WalkScratch::kMaxWords) return end_ = End::too_deep, false;
  scratch_.words[words_++] = {static_cast<uint32_t>(address - base_), value};
  return true;
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
typename Walker<Arch>::Step Walker<Arch>::arrive(uint64_t pc, uint64_t sp, bool is_return_address,
                                                 bool is_odd) {
  pc_ = pc, sp_ = sp, is_return_ = is_return_address;
  if (frames_ == kMaxFrames) return stop(End::too_deep);
  if (is_odd) scratch_.odd[odd_++] = static_cast<uint32_t>(frames_);
  scratch_.frames[frames_] = {pc, is_return_address};
  scratch_.sps[frames_++] = sp;
  return Step::next;
}

template <class Arch>
void Walker<Arch>::begin(bool all) {
  for (int reg = all ? 0 : Arch::kFp; reg < (all ? Arch::kRegisters : Arch::kFp + 1); ++reg) {
    bool known = raw_.registers.has(reg);
    regs_[reg] = {known ? State::sampled : State::lost, raw_.registers.value[reg]};
  }
  end_ = End::complete;
  highest_ = 0;
  left_stack_ = false;
  out_.interrupted.known = 0;
  frames_ = words_ = odd_ = 0;
  out_.registers_used = 0;
  out_.stack.used_frame_pointers = out_.stack.popped_call = false;
  arrive(raw_.registers.value[Arch::kPc], base_, false);
}

template <class Arch>
void Walker<Arch>::run() {
  scratch_.memo.use(code_version_);
  out_.clear();
  out_.registers = raw_.registers;
  end_ = End::register_unknown;
  if (raw_.registers.has(Arch::kPc)) {
    begin(false);
    if (!raw_.registers.has(Arch::kSp)) {
      end_ = End::register_unknown;
    } else {
      walk_plain();
      if (needs_all_) {
        begin(true);
        walk_all();
      }
    }
  }
  finish();
}

template <class Arch>
void Walker<Arch>::finish() {
  out_.stack.frames.assign(scratch_.frames, scratch_.frames + frames_);
  out_.sps.assign(scratch_.sps, scratch_.sps + frames_);
  if (words_ > 0) out_.words.assign(scratch_.words, scratch_.words + words_);
  if (odd_ > 0) out_.odd.assign(scratch_.odd, scratch_.odd + odd_);
  out_.is_exact = end_ == End::complete;
  out_.stack.end = end_;
  out_.stack.copy_needed = static_cast<uint32_t>(highest_);
}

template <class Arch>
typename Walker<Arch>::Place Walker<Arch>::place(uint64_t address) const {
  Place found;
  found.range = code_.find(address);
  if (!found.range) found.row.bits = kUnmapped;
  if (found.range && found.range->table) {
    const TableView& table = *found.range->table;
    found.row_number = table.find(address + found.range->to_text);
    if (found.row_number < table.header->row_count) found.row = table.rows[found.row_number];
  } else if (address >= Arch::kVsyscallBegin && address < Arch::kVsyscallEnd) {
    found.row.bits = Arch::kVsyscallRow;
  }
  return found;
}

template <class Arch>
RowMemo::Entry& Walker<Arch>::entry_at(uint64_t address) {
  RowMemo::Entry& entry = RowMemo::at(scratch_.memo.first(), RowMemo::offset(address));
  uint64_t key = RowMemo::key(address, code_version_);
  // The address before 0 is never kept: a return address of 0 is then looked up each time.
  if (entry.key != key) [[unlikely]]
    entry = {address == UINT64_MAX ? 0 : key, place(address).row.bits, 0};
  return entry;
}

// Whether a return address is a function's first byte, with no code before it. No call can have
// pushed it; it was written onto a new stack (makecontext does this).
template <class Arch>
bool Walker<Arch>::begins_here(const UserFrame& frame) {
  return frame.is_return_address && Row{entry_at(frame.pc).bits}.type() != RowType::none;
}

// Nearly every frame of nearly every stack has CFA = sp or fp plus a constant: these are taken
// here, with all state in locals; anything else is a step(). Stack pointers rise, so the return
// addresses that were read of the copy end where the last frame's stack pointer is.
template <class Arch>
void Walker<Arch>::walk_plain() {
  const std::byte* const copy = raw_.copy.data();
  const uint64_t base = base_;
  const uint64_t words_end = raw_.copy.size() >= 8 ? raw_.copy.size() - 7 : 0;  // of their offsets
  RowMemo::Entry* const memo = scratch_.memo.first();
  const uint32_t version = code_version_;
  for (;;) {
    uint64_t sp = sp_;
    UserFrame* frame = scratch_.frames + frames_;
    UserFrame* const frames_end = scratch_.frames + kMaxFrames;
    uint64_t* sps = scratch_.sps + frames_;
    Register fp = regs_[Arch::kFp];
    RowMemo::Entry* entry = &entry_at(pc_ - is_return_);
    Row found;
    for (;;) {
      found.bits = entry->bits;
      Row row = found;
      uint64_t from = sp;
      bool by_convention = false;
      if (row.type() != RowType::sp) {
        // Without call-frame information fp is followed, under step_frame_pointer()'s conditions.
        by_convention = row.rule_bits() == kNoCfi;
        if (by_convention) {
          if (begins_here(frame[-1])) break;
          row.bits = Row::pack(RowType::fp, 1, 2);
        } else if (row.type() != RowType::fp) {
          break;
        }
        if (fp.state == State::slot) {
          uint64_t at = fp.bits - base;
          if (at >= words_end || words_ == WalkScratch::kMaxWords) break;
          std::memcpy(&from, copy + at, 8);
          scratch_.words[words_++] = {static_cast<uint32_t>(at), from};
          highest_ = std::max(highest_, at + 8);
          fp = {State::value, from};
        }
        if (fp.state == State::lost) break;
        if (fp.state == State::sampled) out_.registers_used |= 1u << Arch::kFp;
        from = fp.bits;
        if (by_convention && (from < sp || from % 8 != 0)) break;
      }
      uint64_t cfa = from + row.cfa() * 8, offset = cfa - 8 - base;
      if (cfa <= sp || offset >= words_end || frame == frames_end) break;
      uint64_t caller;
      std::memcpy(&caller, copy + offset, 8);
      RowMemo::Entry* next = &RowMemo::at(memo, entry->caller);
      if (next->key != RowMemo::key(caller - 1, version)) [[unlikely]] {
        if (caller == 0) break;
        entry->caller = RowMemo::offset(caller - 1);
        next = &entry_at(caller - 1);
      }
      if (by_convention) {
        if (Row{next->bits}.rule_bits() == kUnmapped) break;
        out_.stack.used_frame_pointers = true;
      }
      if (uint32_t slot = row.fp_slot(); slot != kFpSame) {
        fp = {slot <= kMaxFpSlot ? State::slot : State::lost, cfa - 8 * (slot + 1)};
      }
      sp = cfa;
      *frame++ = {caller, true};
      *sps++ = sp;
      entry = next;
    }
    auto frames = static_cast<size_t>(frame - scratch_.frames);
    if (frames > frames_) {
      pc_ = frame[-1].pc, is_return_ = true;
      highest_ = std::max(highest_, sp - base);
    }
    sp_ = sp, frames_ = frames, regs_[Arch::kFp] = fp;
    Place here;
    here.row = found;  // what the loop above could not do
    if (step<false>(here) == Step::stop) return;
  }
}

template <class Arch>
void Walker<Arch>::walk_all() {
  while (step<true>(place(pc_ - is_return_)) == Step::next) {
  }
}

template <class Arch>
template <bool kAll>
typename Walker<Arch>::Step Walker<Arch>::step(const Place& here) {
  Row row = here.row;
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
      if (row.fp_slot() != 1) break;
      // The slot is named by fp itself here, not by the CFA.
      if (leave<kAll>(cfa, here, kFpSame) == Step::stop) return Step::stop;
      regs_[Arch::kFp] = {State::slot, fp};
      return Step::next;
    case RowType::end:
      if (row.cfa() == kEndOfNewThread && has_caller_at_sp()) {
        cfa = sp_ + 8;
        break;
      }
      out_.switched_stacks = row.cfa() == kEndOfThisStack;
      return stop(End::complete);
    case RowType::signal:
      return step_signal<kAll>();
    case RowType::none:
      if (row.cfa() != 0) return stop(End::no_unwind_info);
      if (begins_here(scratch_.frames[frames_ - 1])) return stop_at_beginning();
      return step_frame_pointer(row.rule_bits() != kUnmapped);
    case RowType::full:
      if constexpr (kAll) return step_full(*here.range->table, row);
      needs_all_ = true;
      return Step::stop;
  }
  return leave<kAll>(cfa, here, row.fp_slot());
}

template <class Arch>
template <bool kAll>
typename Walker<Arch>::Step Walker<Arch>::leave(uint64_t cfa, const Place& here, uint32_t fp_slot) {
  if (cfa <= sp_) return stop(End::bad_memory);  // a stack that does not unwind would never end
  uint64_t pc = 0;
  if (!peek(cfa - 8, pc)) return Step::stop;
  if constexpr (kAll) {
    if (here.range && here.range->table) apply_saved(*here.range->table, here.row_number, cfa);
  }
  if (fp_slot >= 1 && fp_slot <= kMaxFpSlot) {
    regs_[Arch::kFp] = {State::slot, cfa - 8 * (fp_slot + 1)};
  } else if (fp_slot != kFpSame) {
    regs_[Arch::kFp] = {State::lost, 0};
  }
  if (pc == 0) return stop_at_zero(cfa - 8);
  return arrive(pc, cfa, true);
}

// Whether the word at sp is a return address. Of a new thread it is whatever lies above its stack.
template <class Arch>
bool Walker<Arch>::has_caller_at_sp() {
  uint64_t pc = 0;
  return load(sp_, pc) && pc != 0 && code_.find(pc - 1) != nullptr;
}

// A return address of 0 is a root by convention. No frame notes that it was read, so it is loaded.
template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::stop_at_zero(uint64_t address) {
  uint64_t zero = 0;
  return load(address, zero) ? stop(End::complete) : Step::stop;
}

// A frame with no caller is the root, even if its rules name a caller. (A signal's restorer has
// rules from one byte before it, so it does not come here.)
template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::stop_at_beginning() {
  scratch_.frames[frames_ - 1].is_return_address = is_return_ = false;
  return stop(End::complete);
}

// A handler with a stack of its own (sigaltstack) interrupted code on one that is not in the copy.
template <class Arch>
bool Walker<Arch>::is_of_this_stack(uint64_t sp) const {
  return sp - base_ < raw_.copy.size() || sp - sp_ < kMaxSignalFrameBytes;
}

// Notes what an earlier walk of the interrupted stack is to be recognised by.
template <class Arch>
void Walker<Arch>::leave_stack(uint64_t pc, uint64_t sp) {
  left_stack_ = true;
  model::UserRegisters& interrupted = out_.interrupted;
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    uint64_t offset = sp_ + static_cast<uint64_t>(Arch::kSignalFrame[reg]) - base_;
    if (!(Arch::kCalleeSaved >> reg & 1) || offset > raw_.copy.size() - 8) continue;
    std::memcpy(&interrupted.value[static_cast<size_t>(reg)], raw_.copy.data() + offset, 8);
    interrupted.known |= 1u << reg;
  }
  interrupted.value[Arch::kPc] = pc;
  interrupted.value[Arch::kSp] = sp;
  interrupted.known |= 1u << Arch::kPc | 1u << Arch::kSp;
}

template <class Arch>
template <bool kAll>
typename Walker<Arch>::Step Walker<Arch>::step_signal() {
  uint64_t pc = 0, sp = 0;
  if (!load(sp_ + Arch::kSignalFrame[Arch::kPc], pc)) return Step::stop;
  if (!load(sp_ + Arch::kSignalFrame[Arch::kSp], sp)) return Step::stop;
  // The restorer was never called: its own address names it, not the byte before.
  scratch_.frames[frames_ - 1].is_return_address = false;
  if (!is_of_this_stack(sp)) leave_stack(pc, sp);
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    if (kAll || reg == Arch::kFp) regs_[reg] = {State::slot, sp_ + Arch::kSignalFrame[reg]};
  }
  return arrive(pc, sp, false, true);
}

// No call-frame information: the convention that fp points at the caller's fp and the return
// address. Applied only when all of it is plausible; the stack is marked.
template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::step_frame_pointer(bool is_mapped) {
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
  if (!peek(fp + 8, pc)) {
    return stop(end_ == End::bad_memory ? End::no_unwind_info : end_);
  }
  // A zero may end a chain of frames; right at the leaf it only shows that fp is something else.
  bool is_plausible = pc == 0 ? is_return_ : Row{entry_at(pc - 1).bits}.rule_bits() != kUnmapped;
  if (!is_plausible) {
    return !is_mapped && !is_return_ ? step_popped_call() : stop(End::no_unwind_info);
  }
  out_.stack.used_frame_pointers = true;
  if (needs_all_) std::ranges::fill(regs_, Register{State::lost, 0});
  regs_[Arch::kFp] = {State::slot, fp};
  if (pc == 0) return stop_at_zero(fp + 8);
  return arrive(pc, fp + 16, true);
}

// A call to where no code is has pushed its return address and done nothing else.
template <class Arch>
typename Walker<Arch>::Step Walker<Arch>::step_popped_call() {
  uint64_t pc = 0;
  if (!peek(sp_, pc)) return Step::stop;
  if (Row{entry_at(pc - 1).bits}.rule_bits() == kUnmapped) return stop(End::no_unwind_info);
  out_.stack.popped_call = true;
  return arrive(pc, sp_ + 8, true);
}

template class Walker<X86_64>;

}  // namespace assay::unwind
