#include "os/machine/pmu.h"

#include <gmock/gmock.h>

#include "os/fake_tree.h"

namespace assay::os {
namespace {

const std::map<std::string, std::string> kFields{
    {"event", "config:0-7,32-35"}, {"umask", "config:8-15"}, {"cmask", "config:24-31"}};

TEST(Pmu, EventsAreMadeOfTheUnitsFields) {
  EXPECT_EQ(event_config("event=0x3c", kFields), 0x3cu);
  EXPECT_EQ(event_config("event=0x1a0,umask=0x1e", kFields), 0x1'0000'1ea0u);
  EXPECT_EQ(event_config("event=0x0,umask=0x80,cmask=1", kFields), 0x100'8000u);
  EXPECT_FALSE(event_config("event=0x3c,ldlat=3", kFields)) << "a field that is not there";
  EXPECT_FALSE(event_config("umask=0x100", kFields)) << "more than fits";
  EXPECT_FALSE(event_config("event=zebra", kFields));
  EXPECT_FALSE(event_config("event=1", {{"event", "config:0-99"}}));
}

// As a Sapphire Rapids machine has it.
TEST(Pmu, ReadsAnIntelUnit) {
  FakeTree tree;
  std::string base = "sys/bus/event_source/devices/cpu/";
  tree.write(base + "type", "4\n");
  tree.write(base + "format/event", "config:0-7\n");
  tree.write(base + "format/umask", "config:8-15\n");
  tree.write(base + "events/slots", "event=0x00,umask=0x4\n");
  tree.write(base + "events/topdown-retiring", "event=0x00,umask=0x80\n");
  tree.write(base + "events/topdown-total-slots", "event=0x3c\n");
  tree.write(base + "events/topdown-total-slots.scale", "4\n");
  tree.write(base + "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
  tree.write("proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
             "model name\t: Intel(R) Xeon(R)\n");
  auto pmu = read_pmu(tree.root());
  ASSERT_TRUE(pmu);
  EXPECT_EQ(pmu->type, 4u);
  EXPECT_EQ(pmu->vendor, "GenuineIntel");
  EXPECT_EQ(pmu->model, 143);
  EXPECT_EQ(pmu->events.at("topdown-retiring").config, 0x8000u);
  EXPECT_EQ(pmu->events.at("topdown-total-slots").scale, 4);
  EXPECT_FALSE(pmu->events.contains("mem-loads")) << "left out: not understood";
}

TEST(Pmu, AMachineWithoutOneSaysSo) {
  FakeTree tree;
  auto pmu = read_pmu(tree.root());
  ASSERT_FALSE(pmu);
  EXPECT_THAT(pmu.error().what, ::testing::HasSubstr("without a PMU"));
}

}  // namespace
}  // namespace assay::os
