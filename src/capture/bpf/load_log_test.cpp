#include "capture/bpf/load_log.h"

#include <gtest/gtest.h>

namespace assay::capture {
namespace {

constexpr const char* kRefusal =
    "libbpf: prog 'on_waking': -- BEGIN PROG LOAD LOG --\n"
    "0: R1=ctx(off=0,imm=0) R10=fp0\n"
    "12: (1f) r1 -= r2\n"
    "math between ctx pointer and register with unbounded min value is not allowed\n"
    "processed 99 insns (limit 1000000) max_states_per_insn 1 total_states 7\n"
    "-- END PROG LOAD LOG --\n";

TEST(LoadLog, TellsTheProgramAndTheVerifiersComplaint) {
  LoadLog log;
  log.add("libbpf: prog 'on_waking': BPF program load failed: Permission denied\n");
  log.add(kRefusal);
  log.add("libbpf: failed to load object 'assay_bpf'\n");
  EXPECT_EQ(
      log.reason(),
      "on_waking: math between ctx pointer and register with unbounded min value is not allowed");
  EXPECT_TRUE(log.verifier_log().starts_with("0: R1=ctx"));
  EXPECT_EQ(log.verifier_log().find("END PROG"), std::string::npos);
}

TEST(LoadLog, WithoutAVerifiersLogTheFirstWordsAreTheReason) {
  LoadLog log;
  log.add("libbpf: map 'threads': failed to create: Invalid argument(-22)\n");
  log.add("libbpf: failed to load object 'assay_bpf'\n");
  EXPECT_EQ(log.reason(), "libbpf: map 'threads': failed to create: Invalid argument(-22)");
  EXPECT_EQ(log.verifier_log(), "");
}

TEST(LoadLog, KeepsTheEndOfALongLog) {
  LoadLog log;
  std::string text = "prog 'x': -- BEGIN PROG LOAD LOG --\n";
  for (int i = 0; i < 100000; ++i) text += "1: (b7) r0 = 0\n";
  text += "the cause\n-- END PROG LOAD LOG --\n";
  log.add(text);
  EXPECT_LE(log.verifier_log().size(), 256u * 1024);
  EXPECT_EQ(log.reason(), "x: the cause");
}

TEST(LoadLog, NothingSaidIsNoReason) {
  EXPECT_EQ(LoadLog().reason(), "");
}

}  // namespace
}  // namespace assay::capture
