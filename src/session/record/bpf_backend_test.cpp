// What the BPF backend says before it is tried, and of itself afterwards. Its records are
// bpf_evidence_test.cpp's.
#include "session/record/bpf_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::session {
namespace {

using ::testing::HasSubstr;

class BpfBackendTest : public ::testing::Test {
 protected:
  // A machine on which nothing speaks against it.
  BpfBackendTest() {
    machine_.btf = true;
    machine_.kernel = {6, 12, 0};
    machine_.online_cpus = {0};
    machine_.effective = uint64_t{1} << static_cast<unsigned>(os::Capability::sys_admin);
  }
  Error refusal() {
    auto tried = try_bpf(machine_);
    if (tried) ADD_FAILURE() << "it was not refused";
    return tried ? Error{} : tried.error();
  }
  os::Capabilities machine_;
};

TEST_F(BpfBackendTest, EveryReasonAgainstItComesWithItsRemedy) {
  auto with = [&](auto change, const char* reason, const char* remedy) {
    os::Capabilities before = machine_;
    change(machine_);
    Error error = refusal();
    EXPECT_THAT(error.what, HasSubstr(reason));
    EXPECT_THAT(error.remedy, HasSubstr(remedy));
    machine_ = before;
  };
  with([](os::Capabilities& m) { m.initial_pid_namespace = false; }, "PID namespace",
       "on the host");
  with([](os::Capabilities& m) { m.btf = false; }, "type information", "CONFIG_DEBUG_INFO_BTF");
  with([](os::Capabilities& m) { m.lockdown = "confidentiality"; }, "locked down", "lockdown");
  with([](os::Capabilities& m) { m.kernel = {6, 1, 20}; }, "lock up", "6.1.36");
  with([](os::Capabilities& m) { m.effective = 0; }, "CAP_BPF", "setcap");
}

TEST_F(BpfBackendTest, HalfOfThePrivilegesIsNotEnough) {
  machine_.effective = uint64_t{1} << static_cast<unsigned>(os::Capability::bpf);
  EXPECT_THAT(refusal().what, HasSubstr("CAP_PERFMON"));
}

TEST(BpfReportText, HasALineForEachNumber) {
  BpfReport report;
  report.counters[capture::bpf::kCountSwitches] = 7;
  report.counters[capture::bpf::kCountWrong] = 2;
  report.stacks = 5;
  report.truth.compared = 3;
  report.truth.differences["other frames"] = 1;
  report.truth.first_difference = "kernel: 1\nreader: 2";
  std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("switches 7\n"));
  EXPECT_THAT(text, HasSubstr("cache_wrong 2\n"));
  EXPECT_THAT(text, HasSubstr("\nstacks 5\n"));
  EXPECT_THAT(text, HasSubstr("compared 3\n"));
  EXPECT_THAT(text, HasSubstr("differs 1 other frames\n"));
  EXPECT_TRUE(text.ends_with("kernel: 1\nreader: 2\n"));
}

}  // namespace
}  // namespace assay::session
