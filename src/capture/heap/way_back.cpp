#include "capture/heap/way_back.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>

namespace assay::capture {
namespace {

// What the kernel reads of a frame begins behind the return address.
constexpr size_t kContextAt = 8;
constexpr size_t kMaskAt = kContextAt + offsetof(ucontext_t, uc_sigmask);
constexpr size_t kLandingMaskAt = kMaskAt + 8;  // the kernel writes here, and does not read it back
constexpr size_t kLandingCallAt = kLandingMaskAt + 8;
constexpr size_t kSchedulingAt = kLandingCallAt + 8;
constexpr size_t kContextBytes = 512;
static_assert(kMaskAt == 0x130 && kLandingMaskAt == 0x138 && kLandingCallAt == 0x140 &&
                  kSchedulingAt == 0x148,
              "as the landing's code has it");
static_assert(kSchedulingAt + sizeof(Scheduling) <= kContextBytes);

constexpr unsigned long kHasVectors = 1, kHasSs = 2, kStrictSs = 4;

// Of the vector state: where its parts are told of, and what marks it in a signal's frame.
constexpr size_t kLegacyBytes = 512, kHeaderEnd = 576, kSoftwareAt = 464;
constexpr uint32_t kMagicFirst = 0x46505853, kMagicLast = 0x46505845;
constexpr uint64_t kTileBits = uint64_t{3} << 17, kTileData = uint64_t{1} << 18;

template <class T>
T value_at(const std::vector<uint8_t>& bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void put(std::vector<uint8_t>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// The end of the last part that is meant, in the processor's own layout.
size_t vector_bytes(uint64_t features) {
  size_t end = kHeaderEnd;
  for (unsigned part = 2; part < 63; ++part) {
    if ((features >> part & 1) == 0) continue;
    unsigned size = 0, offset = 0, unused = 0, more = 0;
    if (__get_cpuid_count(0xd, part, &size, &offset, &unused, &more) == 0) continue;
    end = std::max<size_t>(end, offset + size);
  }
  return end;
}

// As the kernel writes it into a frame: what ptrace tells, marked at both ends.
std::vector<uint8_t> framed_vectors(const std::vector<uint8_t>& told) {
  if (told.size() < kHeaderEnd) return told;
  auto features = value_at<uint64_t>(told, kSoftwareAt);
  // A frame has room for tiles only if the thread uses them.
  if ((value_at<uint64_t>(told, kLegacyBytes) & kTileData) == 0) features &= ~kTileBits;
  size_t size = std::min(vector_bytes(features), told.size());
  std::vector<uint8_t> framed(told.begin(), told.begin() + static_cast<ptrdiff_t>(size));
  framed.resize(size + sizeof kMagicLast);
  put(framed, kSoftwareAt, kMagicFirst);
  put(framed, kSoftwareAt + 4, static_cast<uint32_t>(framed.size()));
  put(framed, kSoftwareAt + 8, features);
  put(framed, kSoftwareAt + 16, static_cast<uint32_t>(size));
  put(framed, size, kMagicLast);
  return framed;
}

void put_registers(const user_regs_struct& from, mcontext_t& into) {
  auto set = [&](int name, unsigned long long value) {
    into.gregs[name] = static_cast<greg_t>(value);
  };
  set(REG_R8, from.r8), set(REG_R9, from.r9), set(REG_R10, from.r10), set(REG_R11, from.r11);
  set(REG_R12, from.r12), set(REG_R13, from.r13), set(REG_R14, from.r14), set(REG_R15, from.r15);
  set(REG_RDI, from.rdi), set(REG_RSI, from.rsi), set(REG_RBP, from.rbp), set(REG_RBX, from.rbx);
  set(REG_RDX, from.rdx), set(REG_RAX, from.rax), set(REG_RCX, from.rcx), set(REG_RSP, from.rsp);
  set(REG_RIP, from.rip), set(REG_EFL, from.eflags);
  set(REG_CSGSFS, from.cs | from.ss << 48);
}

}  // namespace

const std::array<uint8_t, kLandingBytes>& landing_code() {
  static constexpr std::array<uint8_t, kLandingBytes> kCode{
      0x0f, 0x05,                                      //  0: syscall
      0x48, 0x89, 0x44, 0x24, 0xf8,                    //  2: mov %rax,-8(%rsp)
      0xbf, 0x02, 0x00, 0x00, 0x00,                    //  7: mov $SIG_SETMASK,%edi
      0x48, 0x8d, 0xb4, 0x24, 0x30, 0x01, 0x00, 0x00,  // 12: lea 0x130(%rsp),%rsi
      0x31, 0xd2,                                      // 20: xor %edx,%edx
      0x41, 0xba, 0x08, 0x00, 0x00, 0x00,              // 22: mov $8,%r10d
      0xb8, 0x0e, 0x00, 0x00, 0x00,                    // 28: mov $SYS_rt_sigprocmask,%eax
      0x0f, 0x05,                                      // 33: syscall
      // No tracer took the thread. One more call, whose number is in the frame: sched_setattr, or
      // rt_sigreturn at once, which does not return here.
      0x8b, 0x84, 0x24, 0x38, 0x01, 0x00, 0x00,              // 35: mov 0x138(%rsp),%eax
      0x31, 0xff,                                            // 42: xor %edi,%edi
      0x48, 0x8d, 0xb4, 0x24, 0x40, 0x01, 0x00, 0x00,        // 44: lea 0x140(%rsp),%rsi
      0x31, 0xd2,                                            // 52: xor %edx,%edx
      0x0f, 0x05,                                            // 54: syscall
      0xb8, 0x0f, 0x00, 0x00, 0x00,                          // 56: mov $SYS_rt_sigreturn,%eax
      0x0f, 0x05,                                            // 61: syscall
      0x0f, 0x0b, 0x0f, 0x0b, 0x0f, 0x0b, 0x0f, 0x0b, 0x0f,  // 63: ud2
  };
  return kCode;
}

ReturnFrame make_return_frame(const ThreadState& state, uint64_t while_landing, uint64_t return_to,
                              uint64_t top) {
  std::vector<uint8_t> vectors = framed_vectors(state.vectors);
  uint64_t vectors_at = (top - vectors.size()) & ~uint64_t{63};
  ReturnFrame frame;
  frame.at = ((vectors_at - kContextBytes) & ~uint64_t{15}) - 8;  // aligned as after a call
  frame.bytes.resize(vectors_at + vectors.size() - frame.at);

  ucontext_t context{};
  context.uc_flags = kHasVectors | kHasSs | kStrictSs;
  context.uc_stack.ss_flags = ~0;  // makes no sense: the alternative stack stays what it is
  put_registers(state.registers, context.uc_mcontext);
  context.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(vectors_at);
  put(frame.bytes, 0, return_to);
  std::memcpy(frame.bytes.data() + kContextAt, &context, offsetof(ucontext_t, uc_sigmask));
  put(frame.bytes, kMaskAt, state.mask);
  put(frame.bytes, kLandingMaskAt, while_landing);
  constexpr uint64_t kPutScheduling = SYS_sched_setattr, kReturn = SYS_rt_sigreturn;
  put(frame.bytes, kLandingCallAt, state.scheduling ? kPutScheduling : kReturn);
  put(frame.bytes, kSchedulingAt, state.scheduling.value_or(Scheduling()));
  std::copy(vectors.begin(), vectors.end(),
            frame.bytes.begin() + static_cast<ptrdiff_t>(vectors_at - frame.at));
  return frame;
}

}  // namespace assay::capture
