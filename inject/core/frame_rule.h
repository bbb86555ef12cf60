// FrameRule: how to get from one code address to the caller's frame, in 64 bits.
//
// find_frame_rule finds it in the module's own .eh_frame, with the search table of .eh_frame_hdr
// and glibc's _dl_find_object, which is lock-free and async-signal-safe. So attaching to a program
// of 100 MB needs no preparation, dlopen needs no rebuild, and a closed module is not found.
// Async-signal-safe, any thread. Malformed entries end in `unknown`; every read stays inside the
// module. Follows the LSB's .eh_frame and .eh_frame_hdr, and DWARF 5 §6.4.
#pragma once

#include <cstdint>

namespace assay::inject {

struct FrameRule {
  enum class Kind : uint8_t {
    unknown,     // there is CFI, but its rule does not fit into a FrameRule
    none,        // no CFI at all: try the frame pointer
    cfa_offset,  // CFA = register + offset
    cfa_deref,   // CFA = *(register + offset): a function that realigned its stack
    plt,         // CFA = sp + 8, or + 16 from byte `offset` of the stub on
    signal,      // the kernel's signal frame lies at sp
    end,         // no return address: a thread's first function
  };
  // Where a callee-saved register of the caller is.
  enum class Saved : uint8_t {
    same,      // still in the register
    by_cfa,    // at CFA + 8 * slot
    by_frame,  // at frame pointer + 8 * slot
    lost,
  };

  Kind kind = Kind::unknown;
  uint8_t cfa_register = 0;  // DWARF number
  int32_t offset = 0;        // fits 24 bits
  Saved fp = Saved::same, rbx = Saved::same;
  int16_t fp_slot = 0, rbx_slot = 0;  // fit 10 bits

  uint64_t pack() const {
    return uint64_t(kind) | uint64_t(cfa_register & 31) << 4 | uint64_t(offset & 0xffffff) << 9 |
           uint64_t(fp) << 33 | uint64_t(fp_slot & 0x3ff) << 35 | uint64_t(rbx) << 45 |
           uint64_t(rbx_slot & 0x3ff) << 47;
  }
  static FrameRule unpack(uint64_t bits) {
    FrameRule rule;
    rule.kind = Kind(bits & 15);
    rule.cfa_register = bits >> 4 & 31;
    rule.offset = int32_t(uint32_t(bits >> 9 & 0xffffff) << 8) >> 8;
    rule.fp = Saved(bits >> 33 & 3);
    rule.fp_slot = int16_t(int16_t(uint16_t(bits >> 35 & 0x3ff) << 6) >> 6);
    rule.rbx = Saved(bits >> 45 & 3);
    rule.rbx_slot = int16_t(int16_t(uint16_t(bits >> 47 & 0x3ff) << 6) >> 6);
    return rule;
  }
};

// Stores where the main program is: glibc 2.36 does not find code in a program with gaps between
// its segments (node, for example). Not async-signal-safe; allocates nothing.
void learn_program();

// The rule at `pc` (for a return address, pass the address minus 1).
FrameRule find_frame_rule(uintptr_t pc);

// The same in an .eh_frame_hdr that the caller gives; nothing outside [low, high) is read.
FrameRule find_frame_rule_in(const uint8_t* eh_frame_hdr, const uint8_t* low, const uint8_t* high,
                             uintptr_t pc);

}  // namespace assay::inject
