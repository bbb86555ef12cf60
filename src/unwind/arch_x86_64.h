// X86_64: all that unwinding knows of one architecture. Another one is another struct like this.
//
// Registers by DWARF number, where the kernel's signal frame keeps them, and which call-frame rules
// fit the four bytes of a Row. The walker and the table builder take such a struct as template
// argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind/table/cfi.h"
#include "unwind/table/table_format.h"

namespace assay::unwind {

struct X86_64 {
  static constexpr uint16_t kElfMachine = 62;
  static constexpr int kRegisters = 17;
  static constexpr int kFp = 6, kSp = 7, kPc = 16;
  // Registers a function must give back unchanged (rbx, rbp, r12–r15): without a rule they are the
  // caller's; any other without a rule is lost.
  static constexpr uint32_t kCalleeSaved = 1u << 3 | 1u << 6 | 0xfu << 12;

  // Offsets from the stack pointer to the saved registers in the kernel's rt_sigframe, by DWARF
  // number, as the restorer finds it: struct ucontext with uc_mcontext at 40.
  static constexpr int16_t kSignalFrame[kRegisters] = {144, 136, 152, 128, 112, 104, 120, 160, 40,
                                                       48,  56,  64,  72,  80,  88,  96,  168};

  // The page of the vsyscalls, the same in every process: each entry only returns or traps, so the
  // return address is on top of the stack.
  static constexpr uint64_t kVsyscallBegin = 0xffffffffff600000, kVsyscallEnd = 0xffffffffff601000;
  static constexpr uint32_t kVsyscallRow = Row::pack(RowType::sp, kFpSame, 1);

  // A code address can be no larger; tells addresses from the kernel's markers in call chains.
  static constexpr uint64_t kUserEnd = uint64_t{1} << 56;

  // The rule bits of a Row that says the same as `rules`; nullopt when it needs a FullRule.
  static std::optional<uint32_t> compact(const RuleSet& rules, bool is_signal_frame);

  // Finds the code that returns from a signal handler (mov $15,%rax; syscall) from `from` on, for C
  // libraries that give it no call-frame information; code.size() when there is none.
  static size_t find_sigreturn(std::span<const std::byte> code, size_t from);
  static constexpr size_t kSigreturnBytes = 9;
  // Offset of the system call by which glibc's clone makes a thread, up to the maker's return; the
  // code's size when there is none.
  static size_t find_clone3(std::span<const std::byte> code);
  static constexpr size_t kClone3Bytes = 10;
};

}  // namespace assay::unwind
