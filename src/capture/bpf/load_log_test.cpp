#include "capture/bpf/load_log.h"

#include <cerrno>

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

TEST(LoadError, SaysWhatIsMissingWhereItIsRights) {
  LoadLog log;
  log.add("libbpf: failed to load: Operation not permitted\n");
  Error rights = load_error("the programs cannot be loaded", EPERM, log);
  EXPECT_EQ(rights.what,
            "the programs cannot be loaded: Operation not permitted (libbpf: failed to load: "
            "Operation not permitted)");
  EXPECT_EQ(rights.remedy, "run as root, or with CAP_BPF and CAP_PERFMON");
  EXPECT_EQ(rights.code, EPERM);
  EXPECT_EQ(load_error("x", EACCES, LoadLog()).remedy, rights.remedy);
  EXPECT_EQ(load_error("x", ENOMEM, LoadLog()).remedy, "");
}

TEST(LoadError, ARefusalOfTheVerifierComesWithItsLogAndNoRemedy) {
  LoadLog log;
  log.add(kRefusal);
  Error refused = load_error("the kernel does not take the programs", EACCES, log);
  EXPECT_NE(refused.what.find("(on_waking: math between ctx pointer"), std::string::npos);
  EXPECT_EQ(refused.remedy, "") << "root would not help";
  EXPECT_EQ(refused.detail, log.verifier_log());
}

// libbpf tries again with more verbose logs: the first refusal is the cause.
TEST(LoadLog, TheFirstRefusalIsKept) {
  LoadLog log;
  log.add(kRefusal);
  log.add("libbpf: prog 'other': -- BEGIN PROG LOAD LOG --\nlater\n-- END PROG LOAD LOG --\n");
  EXPECT_TRUE(log.reason().starts_with("on_waking: "));
  LoadLog without_name;
  without_name.add(
      "-- BEGIN PROG LOAD LOG --\nfirst\nprocessed 9 insns\n\n-- END PROG LOAD LOG --\n");
  EXPECT_EQ(without_name.reason(), "first");
}

TEST(LoadLog, NothingSaidIsNoReason) {
  EXPECT_EQ(LoadLog().reason(), "");
}

}  // namespace
}  // namespace assay::capture
