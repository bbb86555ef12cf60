#include "capture/heap/seccomp_filter.h"

#include <cstddef>
#include <optional>
#include <vector>

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

// What a program of these steps leaves in its accumulator.
std::optional<uint32_t> computed(std::vector<sock_filter> steps) {
  steps.push_back(statement(BPF_RET | BPF_A, 0));
  return run_filter(steps, seccomp_data{});
}

TEST(SeccompFilter, KnowsEveryOperation) {
  struct Case {
    int operation;
    uint32_t left, right;
    std::optional<uint32_t> result;
  };
  for (const Case& one :
       {Case{BPF_ADD, 7, 3, 10}, Case{BPF_SUB, 7, 9, 0xfffffffe}, Case{BPF_MUL, 7, 3, 21},
        Case{BPF_DIV, 7, 3, 2}, Case{BPF_DIV, 7, 0, std::nullopt}, Case{BPF_AND, 6, 3, 2},
        Case{BPF_OR, 6, 3, 7}, Case{BPF_XOR, 6, 3, 5}, Case{BPF_LSH, 1, 4, 16},
        Case{BPF_LSH, 1, 32, 0}, Case{BPF_RSH, 16, 4, 1}, Case{BPF_RSH, 16, 99, 0},
        Case{BPF_NEG, 1, 0, 0xffffffff}, Case{BPF_MOD, 7, 3, std::nullopt}}) {
    sock_filter load = statement(BPF_LD | BPF_IMM, one.left);
    EXPECT_EQ(computed({load, statement(BPF_ALU | one.operation | BPF_K, one.right)}), one.result)
        << std::hex << one.operation;
    EXPECT_EQ(computed({load, statement(BPF_LDX | BPF_IMM, one.right),
                        statement(BPF_ALU | one.operation | BPF_X, 0)}),
              one.result)
        << "by the other register, " << std::hex << one.operation;
  }
}

TEST(SeccompFilter, KnowsEveryJump) {
  struct Case {
    int operation;
    uint32_t value, with;
    bool holds;
  };
  for (const Case& one :
       {Case{BPF_JEQ, 5, 5, true}, Case{BPF_JEQ, 5, 6, false}, Case{BPF_JGT, 5, 5, false},
        Case{BPF_JGT, 6, 5, true}, Case{BPF_JGE, 5, 5, true}, Case{BPF_JGE, 4, 5, false},
        Case{BPF_JSET, 6, 2, true}, Case{BPF_JSET, 6, 1, false}}) {
    SeccompProgram program{statement(BPF_LD | BPF_IMM, one.value),
                           jump(BPF_JMP | one.operation | BPF_K, one.with, 1, 0),
                           statement(BPF_RET | BPF_K, 0), statement(BPF_RET | BPF_K, 1)};
    EXPECT_EQ(run_filter(program, {}), one.holds ? 1u : 0u) << std::hex << one.operation;
  }
}

TEST(SeccompFilter, MovesBetweenRegistersAndMemory) {
  EXPECT_EQ(computed({statement(BPF_LD | BPF_IMM, 9), statement(BPF_MISC | BPF_TAX, 0),
                      statement(BPF_LD | BPF_IMM, 1), statement(BPF_STX, 15),
                      statement(BPF_LD | BPF_MEM, 15)}),
            9u);
  EXPECT_EQ(computed({statement(BPF_LD | BPF_W | BPF_LEN, 0)}), sizeof(seccomp_data));
  EXPECT_FALSE(computed({statement(BPF_ST, 16)}));
  EXPECT_FALSE(computed({statement(BPF_LD | BPF_MEM, 16)}));
  EXPECT_FALSE(computed({statement(BPF_LD | BPF_W | BPF_ABS, 2)})) << "not aligned";
  EXPECT_FALSE(computed({statement(BPF_LD | BPF_W | BPF_IND, 0)})) << "not for seccomp";
}

// A filter that allows only what it knows, as most of containers do.
TEST(SeccompFilter, LogsAreAllowedAndArgumentsAreAsked) {
  EXPECT_EQ(first_forbidden({about(SYS_brk, SECCOMP_RET_LOG, SECCOMP_RET_ALLOW)}), "");
  constexpr uint32_t kThirdArgument = offsetof(seccomp_data, args) + 2 * 8;
  SeccompProgram no_code{statement(BPF_LD | BPF_W | BPF_ABS, kNumberAt),
                         jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
                         statement(BPF_LD | BPF_W | BPF_ABS, kThirdArgument),
                         jump(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
                         statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                         statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  EXPECT_EQ(first_forbidden({no_code}), "mmap of code");
  EXPECT_EQ(first_forbidden({about(SYS_getpid, SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF)}),
            "memfd_create")
      << "another process is asked, which may say no";
}

}  // namespace
}  // namespace assay::capture
