#include "unwind/expression.h"

#include <dwarf.h>

#include "base/byte_reader.h"

namespace assay::unwind {

namespace {

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, ExpressionContext& context)
      : in_(bytes), context_(context) {}

  void push(uint64_t value) {
    if (depth_ == kDepth)
      good_ = false;
    else
      stack_[depth_++] = value;
  }

  std::optional<uint64_t> run() {
    for (int step = 0; good_ && !in_.at_end(); ++step) {
      if (step >= kMaxExpressionSteps) return std::nullopt;
      execute(in_.u8());
    }
    if (!good_ || !in_.ok() || depth_ == 0) return std::nullopt;
    return stack_[depth_ - 1];
  }

 private:
  static constexpr int kDepth = 32;

  uint64_t pop() {
    if (depth_ == 0) {
      good_ = false;
      return 0;
    }
    return stack_[--depth_];
  }
  uint64_t peek(uint64_t below) {
    if (below >= static_cast<uint64_t>(depth_)) {
      good_ = false;
      return 0;
    }
    return stack_[depth_ - 1 - below];
  }

  void push_register(uint64_t reg, int64_t offset) {
    uint64_t value = 0;
    good_ = good_ && in_.ok() && context_.read_register(reg, value);
    push(value + static_cast<uint64_t>(offset));
  }
  void dereference(unsigned bytes) {
    uint64_t value = 0, address = pop();
    if (bytes == 0 || bytes > 8) good_ = false;
    good_ = good_ && context_.read_memory(address, value);
    if (bytes < 8) value &= (uint64_t{1} << bytes * 8) - 1;
    push(value);
  }
  void jump(int16_t offset) {
    auto to = static_cast<int64_t>(in_.offset()) + offset;
    if (to < 0)
      good_ = false;
    else
      in_.seek(static_cast<size_t>(to));
  }

  void execute(uint8_t op) {
    if (op >= DW_OP_lit0 && op <= DW_OP_lit31) return push(op - DW_OP_lit0);
    if (op >= DW_OP_breg0 && op <= DW_OP_breg31) return push_register(op - DW_OP_breg0, in_.sleb());
    switch (op) {
      case DW_OP_nop:
        return;
      case DW_OP_addr:
      case DW_OP_const8u:
      case DW_OP_const8s:
        return push(in_.u64());
      case DW_OP_const1u:
        return push(in_.u8());
      case DW_OP_const1s:
        return push(static_cast<uint64_t>(int64_t{in_.fixed<int8_t>()}));
      case DW_OP_const2u:
        return push(in_.u16());
      case DW_OP_const2s:
        return push(static_cast<uint64_t>(int64_t{in_.fixed<int16_t>()}));
      case DW_OP_const4u:
        return push(in_.u32());
      case DW_OP_const4s:
        return push(static_cast<uint64_t>(int64_t{in_.fixed<int32_t>()}));
      case DW_OP_constu:
        return push(in_.uleb());
      case DW_OP_consts:
        return push(static_cast<uint64_t>(in_.sleb()));
      case DW_OP_bregx: {
        uint64_t reg = in_.uleb();
        return push_register(reg, in_.sleb());
      }
      case DW_OP_deref:
        return dereference(8);
      case DW_OP_deref_size:
        return dereference(in_.u8());
      case DW_OP_skip:
        return jump(in_.fixed<int16_t>());
      case DW_OP_bra: {
        int16_t offset = in_.fixed<int16_t>();
        if (pop() != 0) jump(offset);
        return;
      }
      default:
        return execute_stack(op);
    }
  }

  void execute_stack(uint8_t op) {
    switch (op) {
      case DW_OP_dup:
        return push(peek(0));
      case DW_OP_drop:
        pop();
        return;
      case DW_OP_over:
        return push(peek(1));
      case DW_OP_pick:
        return push(peek(in_.u8()));
      case DW_OP_swap: {
        uint64_t a = pop(), b = pop();
        push(a);
        return push(b);
      }
      case DW_OP_rot: {
        uint64_t a = pop(), b = pop(), c = pop();
        push(a);
        push(c);
        return push(b);
      }
      case DW_OP_plus_uconst:
        return push(pop() + in_.uleb());
      case DW_OP_neg:
        return push(-pop());
      case DW_OP_not:
        return push(~pop());
      case DW_OP_abs: {
        auto value = static_cast<int64_t>(pop());
        return push(value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
      }
      default:
        return execute_binary(op);
    }
  }

  void execute_binary(uint8_t op) {
    uint64_t b = pop(), a = pop();
    auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    switch (op) {
      case DW_OP_plus:
        return push(a + b);
      case DW_OP_minus:
        return push(a - b);
      case DW_OP_mul:
        return push(a * b);
      case DW_OP_and:
        return push(a & b);
      case DW_OP_or:
        return push(a | b);
      case DW_OP_xor:
        return push(a ^ b);
      case DW_OP_shl:
        return push(b < 64 ? a << b : 0);
      case DW_OP_shr:
        return push(b < 64 ? a >> b : 0);
      case DW_OP_shra:
        return push(static_cast<uint64_t>(sa >> (b < 64 ? b : 63)));
      case DW_OP_div:
        if (b == 0 || (sa == INT64_MIN && sb == -1)) break;
        return push(static_cast<uint64_t>(sa / sb));
      case DW_OP_mod:
        if (b == 0) break;
        return push(a % b);
      case DW_OP_eq:
        return push(a == b);
      case DW_OP_ne:
        return push(a != b);
      case DW_OP_lt:
        return push(sa < sb);
      case DW_OP_le:
        return push(sa <= sb);
      case DW_OP_gt:
        return push(sa > sb);
      case DW_OP_ge:
        return push(sa >= sb);
      default:
        break;
    }
    good_ = false;
  }

  ByteReader in_;
  ExpressionContext& context_;
  uint64_t stack_[kDepth] = {};
  int depth_ = 0;
  bool good_ = true;
};

}  // namespace

std::optional<uint64_t> evaluate(std::span<const std::byte> expression, ExpressionContext& context,
                                 std::optional<uint64_t> initial) {
  Machine machine(expression, context);
  if (initial) machine.push(*initial);
  return machine.run();
}

}  // namespace assay::unwind
