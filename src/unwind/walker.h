// Walker: walks one sampled stack by the rows of unwind tables, and by frame pointers where there
// are none. The hot loop; written by hand because elfutils needs microseconds for each frame.
//
// In: a RawStack and its process's CodeMap; out: frames, end and dependencies in a Walk. Reads
// nothing but the copy and the tables. Registers are fetched only when a rule needs them, so that a
// walk depends on as few words as possible. Most stacks need only pc, sp and fp; when a rule needs
// another register, the walk starts over and follows all of them (kAll). Instantiated per
// architecture.
#pragma once

#include <cstring>
#include <span>

#include "unwind/code_map.h"
#include "unwind/expression.h"
#include "unwind/unwinder.h"
#include "unwind/walk.h"

namespace assay::unwind {

inline constexpr size_t kMaxFrames = 2048;

template <class Arch>
class Walker final : private ExpressionContext {
 public:
  Walker(const RawStack& raw, const CodeMap& code, Walk& out)
      : raw_(raw), code_(code), out_(out), base_(raw.registers.value[Arch::kSp]) {}

  void run();

 private:
  using End = model::StackEnd;
  enum class State : uint8_t { lost, sampled, value, slot };
  struct Register {
    State state = State::lost;
    uint64_t bits = 0;  // the value, or the address of its slot
  };
  // What one step says: walk on, or stop for end_.
  enum class Step { next, stop };

  void begin();
  template <bool kAll>
  void walk();
  template <bool kAll>
  Step step(const CodeRange* range, const TableView* table, uint32_t row_number, Row row);
  template <bool kAll>
  Step leave(uint64_t cfa, const TableView* table, uint32_t row_number, Row row);
  template <bool kAll>
  Step step_signal();
  Step step_frame_pointer(const CodeRange* range);
  Step step_popped_call();
  Step step_full(const TableView& table, Row row);
  void apply(const TableView& table, RuleSpan rules, uint64_t cfa);
  void apply_saved(const TableView& table, uint32_t row_number, uint64_t cfa);
  bool apply_rule(const TableView& table, const RegRule& rule, uint64_t cfa, Register& out);
  std::span<const std::byte> expression(const TableView& table, int32_t at, uint16_t bytes) const;

  Step stop(End end) {
    end_ = end;
    return Step::stop;
  }
  Step arrive(uint64_t pc, uint64_t sp, bool is_return_address);
  bool load(uint64_t address, uint64_t& value);
  bool fetch(int reg, uint64_t& value);

  bool read_register(uint64_t reg, uint64_t& value) override;
  bool read_memory(uint64_t address, uint64_t& value) override { return load(address, value); }

  const RawStack& raw_;
  const CodeMap& code_;
  Walk& out_;
  const uint64_t base_;
  uint64_t pc_ = 0, sp_ = 0;
  bool is_return_ = false;
  bool needs_all_ = false;
  uint64_t highest_ = 0;  // bytes of the copy read so far
  End end_ = End::complete;
  Register regs_[Arch::kRegisters];  // without kAll only fp is kept up to date
};

}  // namespace assay::unwind
