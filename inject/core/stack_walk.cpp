#include "inject/core/stack_walk.h"

#include <atomic>

#include <time.h>
#include <ucontext.h>

#include "inject/core/cfi_program.h"
#include "inject/core/frame_rule.h"
#include "inject/core/stack_bounds.h"

namespace assay::inject {

namespace {

constexpr size_t kCacheRules = 4096;
constexpr int kMaxStacks = 4;         // a walk may cross from a signal's stack to the thread's
constexpr size_t kMaxHookFrames = 8;  // between a hook and the walk

// The thread's own stack, once found.
thread_local StackBounds own_stack;

// Cache of rules by address, without locks: an entry holds the rule and the address mixed with it,
// so that a half-written entry does not match. The generation makes rules of closed modules
// invalid.
struct CachedRule {
  std::atomic<uint64_t> mixed, rule;
};
CachedRule cache[kCacheRules];

uint64_t generation() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (static_cast<uint64_t>(now.tv_sec) >> 2) << 48;
}

FrameRule rule_at(uintptr_t pc, uint64_t now) {
  CachedRule& entry = cache[(pc * 0x9e3779b97f4a7c15) >> 52];
  static_assert(kCacheRules == 1 << 12);
  uint64_t rule = entry.rule.load(std::memory_order_relaxed);
  if ((entry.mixed.load(std::memory_order_relaxed) ^ rule ^ now) == pc)
    return FrameRule::unpack(rule);
  FrameRule found = find_frame_rule(pc);
  rule = found.pack();
  entry.rule.store(rule, std::memory_order_relaxed);
  entry.mixed.store(rule ^ now ^ pc, std::memory_order_relaxed);
  return found;
}

struct Registers {
  uintptr_t value[17] = {};  // by DWARF number; the last is the program counter
  uint32_t known = 0;

  bool knows(unsigned reg) const { return reg < 17 && (known >> reg & 1); }
  void set(unsigned reg, uintptr_t to) { value[reg] = to, known |= 1u << reg; }
};

#if defined(__x86_64__)
constexpr unsigned kFp = kFrameRegister, kSp = kStackRegister, kRbx = kBaseRegister;
constexpr unsigned kPc = 16;
// The DWARF number of each general register of the kernel's signal frame, in its order.
constexpr uint8_t kSignalOrder[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};
constexpr uintptr_t kSignalRegisters = 40;  // where they begin, from sp
#elif defined(__aarch64__)
constexpr unsigned kFp = 0, kSp = 1, kPc = 16;
#endif

class Walk {
 public:
  Walk(const Registers& start, bool exact, uintptr_t* pcs, size_t room, size_t skip)
      : regs_(start), exact_(exact), pcs_(pcs), room_(room), skip_(skip), now_(generation()) {}

  // Reads a copy instead of the stack itself.
  void use_copy(const void* copy, size_t bytes) {
    uintptr_t low = regs_.value[kSp] - kRedZoneBytes;
    to_copy_ = reinterpret_cast<uintptr_t>(copy) - low;
    copy_high_ = low + bytes;
  }

  WalkResult run(bool record_start) {
    if (!enter_stack(regs_.value[kSp])) {
      if (record_start) record();
      return result_;
    }
    if (record_start) record();
    while (result_.frames < room_ && step()) record();
    return result_;
  }

 private:
  bool enter_stack(uintptr_t sp) {
    if (++stacks_ > kMaxStacks) return false;
    if (copy_high_ != 0) {
      high_ = stacks_ == 1 ? copy_high_ : 0;  // there is a copy of the first stack only
      return high_ != 0;
    }
    StackBounds stack = own_stack;
    if (!stack.holds(sp)) {
      stack = find_stack(sp);
      if (stack.is_own) own_stack = stack;  // others may no longer exist at the next walk
    }
    high_ = stack.high;
    return high_ != 0;
  }

  void record() {
    if (skip_ > 0) {
      --skip_;
    } else if (result_.frames < room_) {
      pcs_[result_.frames++] = regs_.value[kPc];
    }
  }

  // The whole stack is read, including other functions' variables. Where a signal hit a return, the
  // frame pointer's slot has just been popped: it lies in the red zone, which signals leave alone.
  __attribute__((no_sanitize("address", "thread", "undefined"))) bool load(uintptr_t at,
                                                                           uintptr_t& out) const {
    uintptr_t low = regs_.value[kSp] - (exact_ ? kRedZoneBytes : 0);
    if (at % sizeof(uintptr_t) != 0 || at < low || at >= high_ || high_ - at < sizeof(uintptr_t))
      return false;
    out = *reinterpret_cast<const uintptr_t*>(at + to_copy_);
    return true;
  }

  bool by_frame_pointer() {
    uintptr_t fp = regs_.value[kFp], next_fp = 0, pc = 0;
    if (!regs_.knows(kFp) || !load(fp, next_fp) || !load(fp + 8, pc)) return false;
    return leave_to(fp + 16, pc, next_fp);
  }

  // The caller's frame: only sp, pc and the registers that were found are kept.
  bool leave_to(uintptr_t cfa, uintptr_t pc, uintptr_t fp) {
    if (cfa <= regs_.value[kSp] || cfa > high_) return false;
    if (pc == 0) {
      result_.complete = true;
      return false;
    }
    regs_.known = 0;
    regs_.set(kSp, cfa);
    regs_.set(kPc, pc);
    regs_.set(kFp, fp);
    exact_ = false;
    return true;
  }

#if defined(__x86_64__)
  bool step() {
    uintptr_t pc = regs_.value[kPc];
    FrameRule rule = rule_at(exact_ ? pc : pc - 1, now_);
    switch (rule.kind) {
      case FrameRule::Kind::end:
        result_.complete = true;
        return false;
      case FrameRule::Kind::signal:
        return leave_signal();
      case FrameRule::Kind::none:
      case FrameRule::Kind::unknown:
        return by_frame_pointer();
      default:
        return by_rule(rule);
    }
  }

  bool by_rule(const FrameRule& rule) {
    uintptr_t cfa = 0, pc = 0;
    if (rule.kind == FrameRule::Kind::plt) {
      cfa = regs_.value[kSp] + 8 + (static_cast<int>(regs_.value[kPc] & 15) >= rule.offset ? 8 : 0);
    } else {
      if (!regs_.knows(rule.cfa_register)) return false;
      cfa = regs_.value[rule.cfa_register] + static_cast<uintptr_t>(intptr_t{rule.offset});
      if (rule.kind == FrameRule::Kind::cfa_deref && !load(cfa, cfa)) return false;
    }
    if (cfa <= regs_.value[kSp] || !load(cfa - 8, pc)) return false;
    uintptr_t fp = 0, rbx = 0;
    bool has_fp = saved(rule.fp, rule.fp_slot, kFp, cfa, fp);
    bool has_rbx = saved(rule.rbx, rule.rbx_slot, kRbx, cfa, rbx);
    if (!leave_to(cfa, pc, fp)) return false;
    if (!has_fp) regs_.known &= ~(1u << kFp);
    if (has_rbx) regs_.set(kRbx, rbx);
    return true;
  }

  bool saved(FrameRule::Saved kind, int16_t slot, unsigned reg, uintptr_t cfa,
             uintptr_t& out) const {
    uintptr_t base = cfa;
    switch (kind) {
      case FrameRule::Saved::same:
        out = regs_.value[reg];
        return regs_.knows(reg);
      case FrameRule::Saved::by_frame:
        if (!regs_.knows(kFp)) return false;
        base = regs_.value[kFp];
        [[fallthrough]];
      case FrameRule::Saved::by_cfa:
        return load(base + static_cast<uintptr_t>(intptr_t{slot} * 8), out);
      default:
        return false;
    }
  }

  bool leave_signal() {
    Registers before;
    uintptr_t at = regs_.value[kSp] + kSignalRegisters;
    for (uint8_t reg : kSignalOrder) {
      uintptr_t value = 0;
      if (!load(at, value)) return false;
      before.set(reg, value);
      at += sizeof(uintptr_t);
    }
    uintptr_t sp = before.value[kSp];
    bool same_stack = sp > regs_.value[kSp] && sp < high_;
    if (!same_stack && !enter_stack(sp)) return false;
    regs_ = before;
    exact_ = true;
    return true;
  }
#else
  bool step() {
    return by_frame_pointer();
  }
#endif

  Registers regs_;
  bool exact_;  // the program counter is not a return address
  uintptr_t* pcs_;
  size_t room_, skip_;
  uint64_t now_;
  uintptr_t high_ = 0;
  uintptr_t to_copy_ = 0, copy_high_ = 0;  // from an address to its copy, and the copy's end
  int stacks_ = 0;
  WalkResult result_;
};

#if defined(__x86_64__)
#define ASSAY_CAPTURE(regs)                                                                       \
  do {                                                                                            \
    uintptr_t pc_, sp_, fp_, rbx_;                                                                \
    asm volatile(                                                                                 \
        "mov %%rsp, %1\n\tmov %%rbp, %2\n\tmov %%rbx, %3\n\tlea 0(%%rip), %%rax\n\tmov %%rax, %0" \
        : "=m"(pc_), "=m"(sp_), "=m"(fp_), "=m"(rbx_)                                             \
        :                                                                                         \
        : "rax", "memory");                                                                       \
    (regs).set(kPc, pc_), (regs).set(kSp, sp_), (regs).set(kFp, fp_), (regs).set(kRbx, rbx_);     \
  } while (0)
#elif defined(__aarch64__)
#define ASSAY_CAPTURE(regs)                                                     \
  do {                                                                          \
    uintptr_t frame_ = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); \
    (regs).set(kPc, 1), (regs).set(kSp, frame_), (regs).set(kFp, frame_);       \
  } while (0)
#endif

}  // namespace

bool prepare_stack_walk() {
  learn_program();
  return learn_thread_layout();
}

__attribute__((noinline)) WalkResult walk_here(uintptr_t* pcs, size_t room, size_t skip) {
  Registers regs;
  ASSAY_CAPTURE(regs);
  return Walk(regs, true, pcs, room, skip + 1).run(false);
}

__attribute__((noinline)) WalkResult walk_above(const void* return_address, uintptr_t* pcs,
                                                size_t room) {
  Registers regs;
  ASSAY_CAPTURE(regs);
  WalkResult all = Walk(regs, true, pcs, room, 0).run(false);
  for (size_t i = 0; i < all.frames && i < kMaxHookFrames; ++i) {
    if (pcs[i] != reinterpret_cast<uintptr_t>(return_address)) continue;
    __builtin_memmove(pcs, pcs + i, (all.frames - i) * sizeof *pcs);
    all.frames -= static_cast<uint32_t>(i);
    break;
  }
  return all;
}

WalkResult walk_interrupted(const void* context, uintptr_t* pcs, size_t room) {
  Registers regs;
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  for (unsigned i = 0; i < 17; ++i)
    regs.set(kSignalOrder[i], static_cast<uintptr_t>(machine.gregs[i]));
#elif defined(__aarch64__)
  regs.set(kPc, machine.pc), regs.set(kSp, machine.sp), regs.set(kFp, machine.regs[29]);
#endif
  return Walk(regs, true, pcs, room, 0).run(true);
}

WalkResult walk_copy(uintptr_t pc, uintptr_t sp, const void* copy, size_t bytes, uintptr_t* pcs,
                     size_t room) {
  Registers regs;
  regs.set(kPc, pc), regs.set(kSp, sp);
  Walk walk(regs, true, pcs, room, 0);
  walk.use_copy(copy, bytes);
  return walk.run(true);
}

}  // namespace assay::inject
