// The user registers that a sample carries, by DWARF number, so that unwinding rules apply
// directly.
#pragma once

#include <array>
#include <cstdint>

namespace assay::model {

// x86-64 DWARF numbers: rax 0, rdx 1, rcx 2, rbx 3, rsi 4, rdi 5, rbp 6, rsp 7, r8–r15 8–15,
// rip 16.
inline constexpr int kRegRdx = 1, kRegRcx = 2, kRegRbx = 3, kRegRsi = 4, kRegRdi = 5, kRegRbp = 6,
                     kRegRsp = 7, kRegR8 = 8, kRegR10 = 10, kRegRip = 16;
inline constexpr int kRegCount = 17;

struct UserRegisters {
  std::array<uint64_t, kRegCount> value{};
  uint32_t known = 0;  // bit i: value[i] was captured

  bool has(int reg) const { return known >> reg & 1; }
  void set(int reg, uint64_t v) {
    value[reg] = v;
    known |= 1u << reg;
  }
  uint64_t ip() const { return value[kRegRip]; }
  uint64_t sp() const { return value[kRegRsp]; }
};

}  // namespace assay::model
