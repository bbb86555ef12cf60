// Waiting for a device, on a real kernel: the lab's server with a stand-in for a GPU, recorded by
// assay as it is, with a stand-in for the vendor's library.
#include <cstdlib>

#include <gtest/gtest.h>

#include "harness.h"

namespace assay {
namespace {

using kernel_test::Background;

// A server that has nothing to do but wait for its device, under load.
nlohmann::json record_infer(const std::string& wait, const std::string& library) {
  Background server({LAB_INFER, "--threads", "2", "--wait", wait, "--device-us", "4000"});
  std::string address = server.read_line();
  address = address.substr(address.rfind(' ') + 1);
  ::setenv("ASSAY_TEST_NVML", library.c_str(), 1);
  std::string path = kernel_test::run_file("accelerator_" + wait);
  auto recorded = kernel_test::run({kernel_test::assay(), "record", "--pid",
                                    std::to_string(server.pid()), "--for", "4s", "-o", path,
                                    "--load", "http://" + address + "/ --connections 4"});
  ::unsetenv("ASSAY_TEST_NVML");
  EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
  return recorded.exit_code == 0 ? kernel_test::report(path) : nlohmann::json();
}

// Other programs may keep the server from its device; then the device is not full, and says so.
void expect_verdict(const nlohmann::json& report) {
  ASSERT_EQ(report["accelerators"].size(), 1u) << report["accelerators"].dump(1);
  const nlohmann::json& device = report["accelerators"][0];
  EXPECT_EQ(device["name"], "Stand-in GPU");
  EXPECT_TRUE(device["used_by_target"]);
  ASSERT_TRUE(device["busy_share"].is_number());
  EXPECT_GT(device["busy_share"], 0.3);
  if (device["busy_share"] < 0.9) return;
  EXPECT_EQ(report["verdict"]["kind"], "accelerator") << report["verdict"].dump(1);
  std::string sentence = report["verdict"]["sentence"];
  EXPECT_NE(sentence.find("infer_one"), std::string::npos) << sentence;
}

TEST(Accelerator, SpinningForADeviceIsWaiting) {
  if (auto why = kernel_test::why_not_attached(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  nlohmann::json report = record_infer("spin", STAND_IN_NVML);
  expect_verdict(report);
  EXPECT_GT(report["vitals"]["accelerator_cpu"], 0.9);
  for (const auto& finding : report["findings"]) EXPECT_NE(finding["id"], "clock-reads");
}

TEST(Accelerator, SleepingForADeviceIsAWaitOfItsKind) {
  if (auto why = kernel_test::why_not_attached(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  nlohmann::json report = record_infer("sleep", STAND_IN_NVML);
  expect_verdict(report);
  EXPECT_GT(report["vitals"]["accelerator"], 0.5);
}

TEST(Accelerator, ALibraryThatCannotBeLoadedCostsOnlyItsFigures) {
  if (auto why = kernel_test::why_not_attached(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  nlohmann::json report = record_infer("sleep", "/does/not/exist.so");
  EXPECT_TRUE(report["accelerators"].empty());
  EXPECT_GT(report["vitals"]["accelerator"], 0.5) << "waits are told by the stack";
  EXPECT_NE(report["quality"].dump().find("accelerators"), std::string::npos);
}

}  // namespace
}  // namespace assay
