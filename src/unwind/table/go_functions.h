// GoFunctions: how far each Go function has moved the stack pointer at each of its addresses.
//
// Go programs carry no .eh_frame and, stripped, no .debug_frame; but every one has .gopclntab,
// which its own runtime walks stacks by. In: that section's bytes (hostile). Out: functions with
// their ranges, stack deltas, and whether one is the first frame of its stack or switches stacks.
// Formats of Go 1.18 and 1.20 and later. Failures: another format or damaged bytes yield no
// functions. Threads: const after read(). The section's bytes must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace assay::unwind {

class GoFunctions {
 public:
  struct Function {
    uint64_t begin = 0, end = 0;   // virtual addresses
    bool is_top = false;           // the runtime's own word: no caller (goexit, mstart, rt0_go)
    bool switches_stacks = false;  // writes sp: its caller is on another stack (systemstack, mcall)
    uint32_t deltas = 0;           // offset of its table of stack deltas
  };

  // `text_vaddr` is used by formats that leave the start of text to the symbol table.
  static GoFunctions read(std::span<const std::byte> pclntab, uint64_t text_vaddr);

  const std::vector<Function>& functions() const { return functions_; }

  // Calls `row(begin, bytes)`: from virtual address `begin` on, sp is `bytes` below where it was at
  // the function's entry; −1 when the table is damaged from there on.
  void run(const Function& function, const std::function<void(uint64_t, int64_t)>& row) const;

 private:
  std::span<const std::byte> deltas_;
  uint32_t quantum_ = 1;
  std::vector<Function> functions_;
};

}  // namespace assay::unwind
