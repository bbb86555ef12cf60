#include "capture/counters/facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace assay::capture {
namespace {

std::string value_of(const std::vector<model::Fact>& facts, const std::string& key) {
  for (const model::Fact& fact : facts) {
    if (fact.key == key) return fact.value;
  }
  return "(none)";
}

TEST(Facts, WhatIsUnknownIsLeftOut) {
  os::Host host;
  host.kernel = "6.1";
  auto facts = host_facts(host);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].scope, "host");
  EXPECT_EQ(facts[0].key, "kernel");
  EXPECT_TRUE(limit_facts({1}, {}).empty());
}

TEST(Facts, LimitsAndBuildAreInWords) {
  os::UsableCpus usable;
  usable.cpus = 1.5;
  usable.bound_by = "quota";
  usable.limits.quota_cpus = 1.5;
  usable.limits.quota_path = "/pool";
  auto limits = limit_facts({3}, usable);
  EXPECT_EQ(limits.at(0).scope, "process 3");
  EXPECT_EQ(value_of(limits, "usable_cpus"), "1.5");
  EXPECT_EQ(value_of(limits, "cgroup_quota_set_by"), "/pool");

  os::BinaryFacts binary;
  binary.sanitizers = {"address", "undefined"};
  binary.optimisation = os::Optimisation::debug;
  auto build = binary_facts({3}, binary);
  EXPECT_EQ(value_of(build, "sanitizers"), "address, undefined");
  EXPECT_EQ(value_of(build, "build"), "debug");
  EXPECT_EQ(value_of(build, "stripped"), "yes");
  EXPECT_EQ(value_of(build, "compiler"), "(none)");

  os::RunningImage image{"/srv", false, true, "aa", "bb"};
  auto replaced = image_facts({3}, image);
  EXPECT_EQ(value_of(replaced, "rebuilt_after_start"), "yes");
  EXPECT_EQ(value_of(replaced, "build_id_on_disk"), "bb");
}

TEST(FactsReal, ThisTestProgramIsKnown) {
  os::ProcFs proc;
  auto facts = read_process_facts({0}, ::getpid(), os::read_host(proc), proc, os::CgroupFs());
  EXPECT_NE(value_of(facts, "exe").find("capture_test"), std::string::npos);
  EXPECT_EQ(value_of(facts, "rebuilt_after_start"), "no");
  EXPECT_EQ(value_of(facts, "stripped"), "no");
  EXPECT_EQ(value_of(facts, "started_utc").size(), std::string("2024-01-01T00:00:00Z").size());
  EXPECT_NE(value_of(facts, "usable_cpus"), "(none)");
  EXPECT_TRUE(read_process_facts({0}, 0x3fffff, {}, proc, os::CgroupFs()).empty());
}

}  // namespace
}  // namespace assay::capture
