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

// The rule bits found for addresses, so that a frame seen before costs one load. Direct-mapped; an
// entry is of one CodeMap's version only. Each entry also guesses its caller's entry: while the
// guess is being checked, the processor already walks on.
class RowMemo {
 public:
  struct Entry {  // 16 bytes: four to a cache line
    uint64_t key = 0;
    uint32_t bits = 0;
    uint32_t caller = 0;  // where the entry that followed last time lies, in bytes from the first:
                          // what a walk waits for is this load alone
  };

  // Of the CodeMap's version only 16 bits are kept: when the others change, all is forgotten.
  void use(uint32_t version) {
    if (version >> 16 == epoch_) return;
    epoch_ = version >> 16;
    entries_.assign(kEntries, Entry{});
  }
  Entry* first() { return entries_.data(); }
  // The entry of an address, in bytes from the first.
  static uint32_t offset(uint64_t address) {
    auto number = static_cast<uint32_t>(address * 0x9E3779B97F4A7C15ull >> 40) % kEntries;
    return number * static_cast<uint32_t>(sizeof(Entry));
  }
  static Entry& at(Entry* first, uint32_t offset) {
    return *reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(first) + offset);
  }
  // Code lies below 2^48, so the rotation leaves 16 bits for the version. No entry has key 0,
  // because versions begin at 1.
  static uint64_t key(uint64_t address, uint32_t version) {
    return (address << 16 | address >> 48) ^ (version & 0xffff);
  }

 private:
  static constexpr size_t kEntries = 16384;
  uint32_t epoch_ = 0;
  std::vector<Entry> entries_ = std::vector<Entry>(kEntries);
};

// Room for the walk in progress, reused from walk to walk.
struct WalkScratch {
  static constexpr size_t kMaxWords = 2 * kMaxFrames;
  UserFrame frames[kMaxFrames];
  uint64_t sps[kMaxFrames];
  StackWord words[kMaxWords];
  uint32_t odd[kMaxFrames];
  RowMemo memo;
};

template <class Arch>
class Walker final : private ExpressionContext {
 public:
  // `code_version` names the state of `code`: a number above 0, never used for another.
  Walker(const RawStack& raw, const CodeMap& code, uint32_t code_version, WalkScratch& scratch,
         Walk& out)
      : raw_(raw),
        code_(code),
        code_version_(code_version),
        scratch_(scratch),
        out_(out),
        base_(raw.registers.value[Arch::kSp]) {}

  void run();

 private:
  using End = model::StackEnd;
  enum class State : uint8_t { lost, sampled, value, slot };
  struct Register {
    State state;
    uint64_t bits;  // the value, or the address of its slot
  };
  // What one step says: walk on, or stop for end_.
  enum class Step { next, stop };

  struct Place {  // a row and where it was found
    const CodeRange* range = nullptr;
    uint32_t row_number = 0;
    Row row{kNoCfi};
  };

  void begin(bool all);
  void walk_plain();
  void walk_all();
  void finish();
  Place place(uint64_t address) const;
  RowMemo::Entry& entry_at(uint64_t address);
  bool begins_here(const UserFrame& frame);
  Step stop_at_beginning();
  template <bool kAll>
  Step step(const Place& place);
  template <bool kAll>
  Step leave(uint64_t cfa, const Place& place, uint32_t fp_slot);
  template <bool kAll>
  Step step_signal();
  bool is_of_this_stack(uint64_t sp) const;
  void leave_stack(uint64_t pc, uint64_t sp);
  Step step_frame_pointer(bool is_mapped);
  Step step_popped_call();
  Step stop_at_zero(uint64_t address);
  bool has_caller_at_sp();
  Step step_full(const TableView& table, Row row);
  void apply(const TableView& table, RuleSpan rules, uint64_t cfa);
  void apply_saved(const TableView& table, uint32_t row_number, uint64_t cfa);
  bool apply_rule(const TableView& table, const RegRule& rule, uint64_t cfa, Register& out);
  std::span<const std::byte> expression(const TableView& table, int32_t at, uint16_t bytes) const;

  Step stop(End end) {
    end_ = end;
    return Step::stop;
  }
  // `is_odd`: the return address was not read from just below `sp`.
  Step arrive(uint64_t pc, uint64_t sp, bool is_return_address, bool is_odd = false);
  bool peek(uint64_t address, uint64_t& value);
  bool load(uint64_t address, uint64_t& value);
  bool fetch(int reg, uint64_t& value);

  bool read_register(uint64_t reg, uint64_t& value) override;
  bool read_memory(uint64_t address, uint64_t& value) override { return load(address, value); }

  const RawStack& raw_;
  const CodeMap& code_;
  const uint32_t code_version_;
  WalkScratch& scratch_;
  Walk& out_;
  const uint64_t base_;
  uint64_t pc_ = 0, sp_ = 0;
  bool is_return_ = false;
  bool needs_all_ = false;
  bool left_stack_ = false;                  // sp_ is on another stack than the copy
  size_t frames_ = 0, words_ = 0, odd_ = 0;  // so many in scratch_
  uint64_t highest_ = 0;                     // bytes of the copy read so far
  End end_ = End::complete;
  Register regs_[Arch::kRegisters];  // without kAll only fp is kept up to date
};

}  // namespace assay::unwind
