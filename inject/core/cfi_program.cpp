#include "inject/core/cfi_program.h"

namespace assay::inject {

namespace {

constexpr size_t kMaxRemembered = 8;  // compilers nest one or two deep

// One register's rule while the program runs.
struct Saved {
  enum class Kind : uint8_t { same, offset, expression, undefined, strange };
  Kind kind = Kind::same;
  int64_t offset = 0;
  CfiReader expression{nullptr, nullptr};
};

struct State {
  bool cfa_is_expression = false, has_cfa = false;
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  CfiReader cfa_expression{nullptr, nullptr};
  Saved fp, base, ra;

  Saved* rule(uint64_t reg) {
    if (reg == kFrameRegister) return &fp;
    if (reg == kBaseRegister) return &base;
    if (reg == kReturnRegister) return &ra;
    return nullptr;
  }
};

class Program {
 public:
  Program(CfiFactors factors, uint64_t target) : factors_(factors), target_(target) {}

  // False: the instructions are invalid.
  bool run(CfiReader in) {
    while (!in.at_end()) {
      if (!step(in) || !in.ok()) return false;
      if (location_ > target_) return true;
    }
    return in.ok();
  }
  void keep_initial() { initial_ = state_; }
  // The state before the instructions went past the target.
  const State& state() const { return location_ > target_ ? before_ : state_; }

 private:
  bool step(CfiReader& in) {
    uint8_t op = in.u8(), low = op & 0x3f;
    switch (op & 0xc0) {
      case 0x40:
        return advance(low);
      case 0x80:
        set(low, Saved::Kind::offset, factored(in.uleb()));
        return true;
      case 0xc0:
        restore(low);
        return true;
      default:
        return extended(op, in);
    }
  }

  bool extended(uint8_t op, CfiReader& in) {
    uint64_t reg = 0;
    switch (op) {
      case 0x00:  // nop
        return true;
      case 0x02:  // advance_loc1, 2, 4
        return advance(in.u8());
      case 0x03:
        return advance(in.fixed<uint16_t>());
      case 0x04:
        return advance(in.fixed<uint32_t>());
      case 0x05:  // offset_extended
        reg = in.uleb();
        set(reg, Saved::Kind::offset, factored(in.uleb()));
        return true;
      case 0x11:  // offset_extended_sf
        reg = in.uleb();
        set(reg, Saved::Kind::offset, in.sleb() * factors_.data);
        return true;
      case 0x06:  // restore_extended
        restore(in.uleb());
        return true;
      case 0x07:  // undefined
        set(in.uleb(), Saved::Kind::undefined, 0);
        return true;
      case 0x08:  // same_value
        set(in.uleb(), Saved::Kind::same, 0);
        return true;
      case 0x09:  // register
        reg = in.uleb();
        in.uleb();
        set(reg, Saved::Kind::strange, 0);
        return true;
      case 0x0a:
        return remember();
      case 0x0b:
        return recall();
      case 0x10:  // expression
      case 0x16:  // val_expression
        reg = in.uleb();
        set(reg, op == 0x10 ? Saved::Kind::expression : Saved::Kind::strange, 0,
            in.part(in.uleb()));
        return true;
      case 0x14:  // val_offset
        reg = in.uleb();
        in.uleb();
        set(reg, Saved::Kind::strange, 0);
        return true;
      case 0x2d:  // AArch64: negate_ra_state
        return true;
      case 0x2e:  // GNU_args_size
        in.uleb();
        return true;
      default:
        return define_cfa(op, in);
    }
  }

  bool define_cfa(uint8_t op, CfiReader& in) {
    switch (op) {
      case 0x0c:  // def_cfa
        state_.cfa_register = in.uleb();
        state_.cfa_offset = static_cast<int64_t>(in.uleb());
        break;
      case 0x12:  // def_cfa_sf
        state_.cfa_register = in.uleb();
        state_.cfa_offset = in.sleb() * factors_.data;
        break;
      case 0x0d:  // def_cfa_register
        if (!state_.has_cfa || state_.cfa_is_expression) return false;
        state_.cfa_register = in.uleb();
        break;
      case 0x0e:  // def_cfa_offset
        if (!state_.has_cfa || state_.cfa_is_expression) return false;
        state_.cfa_offset = static_cast<int64_t>(in.uleb());
        break;
      case 0x13:  // def_cfa_offset_sf
        if (!state_.has_cfa || state_.cfa_is_expression) return false;
        state_.cfa_offset = in.sleb() * factors_.data;
        break;
      case 0x0f:  // def_cfa_expression
        state_.cfa_expression = in.part(in.uleb());
        state_.cfa_is_expression = state_.has_cfa = true;
        return in.ok();
      default:
        return false;
    }
    state_.has_cfa = true;
    state_.cfa_is_expression = false;
    return true;
  }

  bool remember() {
    if (depth_ == kMaxRemembered) return false;
    remembered_[depth_++] = state_;
    return true;
  }
  bool recall() {
    if (depth_ == 0) return false;
    state_ = remembered_[--depth_];
    return true;
  }

  bool advance(uint64_t count) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, factors_.code, &bytes) ||
        __builtin_add_overflow(location_, bytes, &location_))
      return false;
    if (location_ > target_) before_ = state_;
    return true;
  }
  int64_t factored(uint64_t n) const {
    return static_cast<int64_t>(n * static_cast<uint64_t>(factors_.data));
  }
  void set(uint64_t reg, Saved::Kind kind, int64_t offset,
           CfiReader expression = {nullptr, nullptr}) {
    if (Saved* rule = state_.rule(reg)) *rule = Saved{kind, offset, expression};
  }
  void restore(uint64_t reg) {
    if (Saved* rule = state_.rule(reg)) *rule = *initial_.rule(reg);
  }

  CfiFactors factors_;
  uint64_t target_, location_ = 0;
  State state_, initial_, before_;
  State remembered_[kMaxRemembered];
  size_t depth_ = 0;
};

// DW_OP_bregN offset, with or without a dereference after it, and nothing else.
bool is_register_offset(CfiReader in, bool dereferenced, uint64_t& reg, int64_t& offset) {
  uint8_t op = in.u8();
  if (op < 0x70 || op > 0x8f) return false;
  reg = op - 0x70;
  offset = in.sleb();
  if (dereferenced && in.u8() != 0x06) return false;
  return in.ok() && in.at_end();
}

// What linkers write for .plt: breg7 8, breg16 0, lit15, and, litN, ge, lit3, shl, plus.
bool is_plt(CfiReader in, int32_t& threshold) {
  const uint8_t before[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a}, after[] = {0x2a, 0x33, 0x24, 0x22};
  for (uint8_t byte : before) {
    if (in.u8() != byte) return false;
  }
  uint8_t literal = in.u8();
  for (uint8_t byte : after) {
    if (in.u8() != byte) return false;
  }
  threshold = literal - 0x30;
  return in.ok() && in.at_end() && literal >= 0x30 && literal <= 0x4f;
}

bool slot_of(int64_t offset, int16_t& slot) {
  slot = static_cast<int16_t>(offset / 8);
  return offset % 8 == 0 && offset >= -512 * 8 && offset <= 511 * 8;
}

void describe_saved(const Saved& saved, FrameRule::Saved& kind, int16_t& slot) {
  uint64_t reg = 0;
  int64_t offset = 0;
  kind = FrameRule::Saved::lost;
  switch (saved.kind) {
    case Saved::Kind::same:
      kind = FrameRule::Saved::same;
      break;
    case Saved::Kind::offset:
      if (slot_of(saved.offset, slot)) kind = FrameRule::Saved::by_cfa;
      break;
    case Saved::Kind::expression:
      if (is_register_offset(saved.expression, false, reg, offset) && reg == kFrameRegister &&
          slot_of(offset, slot))
        kind = FrameRule::Saved::by_frame;
      break;
    default:
      break;
  }
}

bool describe_cfa(const State& state, FrameRule& rule) {
  uint64_t reg = state.cfa_register;
  int64_t offset = state.cfa_offset;
  rule.kind = FrameRule::Kind::cfa_offset;
  if (state.cfa_is_expression) {
    if (is_plt(state.cfa_expression, rule.offset)) {
      rule.kind = FrameRule::Kind::plt;
      return true;
    }
    if (!is_register_offset(state.cfa_expression, true, reg, offset)) return false;
    rule.kind = FrameRule::Kind::cfa_deref;
  }
  rule.cfa_register = static_cast<uint8_t>(reg);
  rule.offset = static_cast<int32_t>(offset);
  return reg < 32 && offset >= -(1 << 23) && offset < (1 << 23);
}

}  // namespace

FrameRule run_cfi_program(CfiReader cie_program, CfiReader fde_program, CfiFactors factors,
                          uint64_t offset) {
  Program program(factors, offset);
  if (!program.run(cie_program)) return {};
  program.keep_initial();
  if (!program.run(fde_program)) return {};
  const State& state = program.state();

  FrameRule rule;
  if (state.ra.kind == Saved::Kind::undefined) {
    rule.kind = FrameRule::Kind::end;
    return rule;
  }
  if (!state.has_cfa || !describe_cfa(state, rule)) return {};
#if defined(__x86_64__)
  // On x86-64 the call itself put the return address below the CFA.
  if (state.ra.kind != Saved::Kind::offset || state.ra.offset != -8) return {};
#endif
  describe_saved(state.fp, rule.fp, rule.fp_slot);
  describe_saved(state.base, rule.rbx, rule.rbx_slot);
  return rule;
}

}  // namespace assay::inject
