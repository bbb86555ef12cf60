// The bytes of an unwind table: one module's call-frame information as fixed rows sorted by
// address.
//
// Three readers share these bytes: the unwinder over copied stacks (this room), a sampler inside
// the target that may neither allocate nor lock, and a BPF program. Hence plain structs, offsets
// instead of pointers, and a lookup of one array access plus at most eight steps. docs/unwinding.md
// is the prose.
//
// Addresses in a table are "text addresses": the executable load segments laid end to end, each
// beginning at a multiple of kPageBytes. A Segment says which file offsets and virtual addresses it
// holds, so that one subtraction per mapping turns a program counter into a text address.
// Threads: a table never changes after it was built. This header depends on nothing but <cstdint>.
#pragma once

#include <cstdint>

namespace assay::unwind {

inline constexpr char kTableMagic[8] = {'A', 'S', 'S', 'A', 'Y', 'U', 'W', 'T'};
inline constexpr uint32_t kTableVersion = 2;
inline constexpr uint32_t kPageBytes = 256;  // bytes of text per entry of the index

// What a row says of the canonical frame address (CFA: the stack pointer in the caller, after
// return).
enum class RowType : uint32_t {
  sp = 0,      // CFA = sp + 8·cfa
  fp = 1,      // CFA = fp + 8·cfa
  end = 2,     // cfa 0 the first frame of its thread: there is no caller; 1 (kEndOfThisStack) the
               // first on this stack: its caller is on another; 2 (kEndOfNewThread) behind a
               // clone3 call: a new thread has no caller, the thread that made it has one at sp
  plt = 3,     // CFA = sp + 8 + ((pc & 15) >= cfa ? 8 : 0)
  signal = 4,  // the kernel's signal frame lies at sp; all registers are restored from it
  fp_memory = 5,  // CFA = *(fp + 8·signed(cfa)); the caller's fp is at *fp when fp_slot is 1
  none = 6,       // no rule: cfa 0 no call-frame information, 1 some that is not understood
  full = 7,       // rule `cfa` of the table of full rules
};

// A row holds from its address to the next row's. The return address is at CFA − 8 in every type
// but end, signal, none and full. bits: pc 0–7 | type 8–10 | fp_slot 11–15 | cfa 16–31.
struct Row {
  uint32_t bits;

  static constexpr uint32_t pack(RowType type, uint32_t fp_slot, uint32_t cfa) {
    return static_cast<uint32_t>(type) << 8 | fp_slot << 11 | cfa << 16;
  }
  constexpr uint32_t pc_low() const { return bits & 0xff; }
  constexpr RowType type() const { return static_cast<RowType>(bits >> 8 & 7); }
  constexpr uint32_t fp_slot() const { return bits >> 11 & 31; }
  constexpr uint32_t cfa() const { return bits >> 16; }
  constexpr int32_t signed_cfa() const { return static_cast<int16_t>(bits >> 16); }
  constexpr uint32_t rule_bits() const { return bits & ~0xffu; }
};
static_assert(sizeof(Row) == 4);

// fp_slot: 0 the caller's fp is unchanged; n in 1…kMaxFpSlot it was saved at CFA − 8·(n + 1).
inline constexpr uint32_t kFpSame = 0, kMaxFpSlot = 29, kFpLost = 31;
inline constexpr uint32_t kEndOfThisStack = 1, kEndOfNewThread = 2;
inline constexpr uint32_t kNoCfi = Row::pack(RowType::none, 0, 0);
inline constexpr uint32_t kNotUnderstood = Row::pack(RowType::none, 0, 1);

struct Segment {  // one executable PT_LOAD
  uint64_t file_offset;
  uint64_t vaddr;
  uint64_t bytes;
  uint64_t text;  // text address of its first byte; a multiple of kPageBytes
};

enum class RegKind : uint8_t {
  undefined = 0,      // the value is lost
  same = 1,           // unchanged
  at_cfa = 2,         // saved at CFA + value
  is_cfa = 3,         // equals CFA + value
  in_register = 4,    // held in register `value`
  at_expression = 5,  // saved at the address the expression gives; value: offset of its bytes
  is_expression = 6,  // equals what the expression gives
};

struct RegRule {
  uint8_t reg;  // DWARF number
  RegKind kind;
  uint16_t expression_bytes;
  int32_t value;
};
static_assert(sizeof(RegRule) == 8);

// Registers other than fp and the return address that a row's frame has saved, for the rare caller
// whose CFA needs them. Each row has a 16-bit index of a set; set 0 is empty.
struct RuleSpan {
  uint32_t first;
  uint32_t count;
};
inline constexpr uint16_t kSavedUnknown = 0xffff;  // too many distinct sets in this module

struct FullRule {
  uint8_t cfa_is_expression;
  uint8_t cfa_reg;
  uint16_t expression_bytes;
  int32_t cfa_value;  // offset from cfa_reg, or offset of the expression's bytes
  RuleSpan regs;      // every register with a rule, fp and return address among them
  uint32_t is_signal_frame;
  uint32_t reserved;
};
static_assert(sizeof(FullRule) == 24);

enum TableFlag : uint32_t {
  kTableGo = 1,  // a Go program: frame pointers end in 0 at a goroutine's first frame
};

struct TableHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t total_bytes;
  uint64_t checksum;   // table_checksum() of the whole table with this field 0
  char build_id[136];  // lowercase hex, NUL-padded; empty when the module has none
  uint32_t machine;    // ELF e_machine
  uint32_t flags;      // TableFlag
  uint64_t text_bytes;
  // Where each array begins, in bytes from the header, 8-aligned, and how many items it has.
  uint32_t segment_count, page_count, row_count, saved_set_count;
  uint32_t full_rule_count, reg_rule_count, expression_bytes, reserved;
  uint64_t segments_at, index_at, rows_at, saved_at, saved_sets_at, full_rules_at, reg_rules_at,
      expressions_at;
};
static_assert(sizeof(TableHeader) == 280);

// A validated table, wherever its bytes lie. Copyable; does not own.
struct TableView {
  const TableHeader* header = nullptr;
  const Segment* segments = nullptr;
  const uint32_t* index =
      nullptr;  // page_count + 1 row numbers: the first row at or after each page
  const Row* rows = nullptr;
  const uint16_t* saved = nullptr;  // per row: number of its saved set
  const RuleSpan* saved_sets = nullptr;
  const FullRule* full_rules = nullptr;
  const RegRule* reg_rules = nullptr;
  const uint8_t* expressions = nullptr;

  // The number of the row that holds at a text address below page_count·kPageBytes; row_count when
  // there is none.
  uint32_t find(uint64_t text) const {
    uint64_t page = text / kPageBytes;
    uint32_t low = text % kPageBytes;
    uint32_t first = index[page];
    uint32_t count = index[page + 1] - first;
    const Row* row = rows + first;  // the first row of the page that begins after `low`, by halving
    while (count > 0) {
      uint32_t half = count / 2;
      bool right = row[half].pc_low() <= low;
      row = right ? row + half + 1 : row;
      count = right ? count - half - 1 : half;
    }
    uint32_t after = static_cast<uint32_t>(row - rows);
    return after == 0 ? header->row_count : after - 1;
  }
};

}  // namespace assay::unwind
