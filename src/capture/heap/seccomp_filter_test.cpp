#include "capture/heap/seccomp_filter.h"

#include <cstddef>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace assay::capture {
namespace {

constexpr uint32_t kNumberAt = offsetof(seccomp_data, nr);

sock_filter statement(int code, uint32_t k) {
  return {static_cast<uint16_t>(code), 0, 0, k};
}
sock_filter jump(int code, uint32_t k, uint8_t yes, uint8_t no) {
  return {static_cast<uint16_t>(code), yes, no, k};
}

// Answers `listed` to one call and `otherwise` to all others.
SeccompProgram about(int number, uint32_t listed, uint32_t otherwise) {
  return {statement(BPF_LD | BPF_W | BPF_ABS, kNumberAt),
          jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1),
          statement(BPF_RET | BPF_K, listed), statement(BPF_RET | BPF_K, otherwise)};
}

TEST(SeccompFilter, AnswersAsItsProgramSays) {
  SeccompProgram filter = about(SYS_getpid, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
  seccomp_data call{};
  call.nr = SYS_getpid;
  EXPECT_EQ(run_filter(filter, call), SECCOMP_RET_ALLOW);
  call.nr = SYS_gettid;
  EXPECT_EQ(run_filter(filter, call), SECCOMP_RET_KILL_PROCESS);
}

TEST(SeccompFilter, ComputesWithArgumentsAndMemory) {
  constexpr uint32_t kThirdArgument = offsetof(seccomp_data, args) + 2 * 8;
  SeccompProgram filter{
      statement(BPF_LD | BPF_W | BPF_ABS, kThirdArgument),
      statement(BPF_ALU | BPF_AND | BPF_K, PROT_EXEC),
      statement(BPF_ST, 3),
      statement(BPF_LDX | BPF_W | BPF_MEM, 3),
      statement(BPF_MISC | BPF_TXA, 0),
      jump(BPF_JMP | BPF_JGT | BPF_K, 0, 0, 1),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  seccomp_data call{};
  call.args[2] = PROT_READ | PROT_EXEC;
  EXPECT_EQ(run_filter(filter, call), SECCOMP_RET_ERRNO | 1);
  call.args[2] = PROT_READ;
  EXPECT_EQ(run_filter(filter, call), SECCOMP_RET_ALLOW);
}

TEST(SeccompFilter, ForbidsWhenAnyFilterDoes) {
  SeccompProgram all{statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  SeccompProgram no_memfd = about(SYS_memfd_create, SECCOMP_RET_ERRNO | 1, SECCOMP_RET_ALLOW);
  SeccompProgram no_ptrace = about(SYS_ptrace, SECCOMP_RET_ERRNO | 1, SECCOMP_RET_ALLOW);
  SeccompProgram traps = about(SYS_getpid, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
  EXPECT_EQ(first_forbidden({}), "");
  EXPECT_EQ(first_forbidden({all, no_ptrace}), "") << "of no concern to the sampler";
  EXPECT_EQ(first_forbidden({all, no_memfd}), "memfd_create");
  EXPECT_EQ(first_forbidden({traps, all}), "getpid");
}

TEST(SeccompFilter, ProgramsOutOfTheirBoundsForbid) {
  seccomp_data call{};
  EXPECT_FALSE(run_filter(SeccompProgram{}, call));
  EXPECT_FALSE(run_filter(SeccompProgram{statement(BPF_LD | BPF_W | BPF_ABS, 4096)}, call));
  EXPECT_FALSE(run_filter(SeccompProgram{statement(BPF_JMP | BPF_JA, 5)}, call));
  EXPECT_NE(first_forbidden({SeccompProgram{}}), "");
}

}  // namespace
}  // namespace assay::capture
