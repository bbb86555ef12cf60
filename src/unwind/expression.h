// Evaluates the DWARF expressions of call-frame information, within fixed bounds.
//
// In: an expression's bytes (hostile) and callbacks for a register and for 8 bytes of memory. Out:
// the top of its stack, or nothing when it is malformed, uses an operation outside the set below,
// reads what a callback refuses, or takes more than kMaxExpressionSteps. Allocates nothing, takes
// no lock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace assay::unwind {

inline constexpr int kMaxExpressionSteps = 256;

class ExpressionContext {
 public:
  virtual bool read_register(uint64_t reg, uint64_t& value) = 0;
  virtual bool read_memory(uint64_t address, uint64_t& value) = 0;

 protected:
  ~ExpressionContext() = default;
};

// `initial`: pushed first, as DW_CFA_expression asks for the CFA; nullopt for a CFA's own
// expression.
std::optional<uint64_t> evaluate(std::span<const std::byte> expression, ExpressionContext& context,
                                 std::optional<uint64_t> initial);

}  // namespace assay::unwind
