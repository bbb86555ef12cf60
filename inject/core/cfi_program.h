// Runs the call-frame instructions of one function up to one address and returns the rule for it.
//
// Only what a walk needs is kept: the CFA, the return address, the frame pointer and rbx (the
// registers that CFAs are made of in practice). Async-signal-safe; no memory but the stack.
#pragma once

#include <cstdint>

#include "inject/core/cfi_reader.h"
#include "inject/core/frame_rule.h"

namespace assay::inject {

#if defined(__x86_64__)
inline constexpr uint64_t kReturnRegister = 16, kFrameRegister = 6, kStackRegister = 7,
                          kBaseRegister = 3;
#elif defined(__aarch64__)
inline constexpr uint64_t kReturnRegister = 30, kFrameRegister = 29, kStackRegister = 31,
                          kBaseRegister = 19;
#endif

struct CfiFactors {
  uint64_t code = 1;
  int64_t data = 1;
};

// `offset`: bytes from the beginning of the function.
FrameRule run_cfi_program(CfiReader cie_program, CfiReader fde_program, CfiFactors factors,
                          uint64_t offset);

}  // namespace assay::inject
