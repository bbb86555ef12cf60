#include "model/device/accelerator.h"

#include <gtest/gtest.h>

namespace assay::model {
namespace {

TEST(Accelerator, DevicesAreToldByTheirPaths) {
  EXPECT_EQ(accelerator_device("/dev/nvidia0"), "nvidia0");
  EXPECT_EQ(accelerator_device("/dev/nvidia12"), "nvidia12");
  EXPECT_EQ(accelerator_device("/dev/dri/renderD128"), "dri/renderD128");
  EXPECT_EQ(accelerator_device("/dev/kfd"), "kfd");
  EXPECT_EQ(accelerator_device("/dev/tenstorrent/0"), "tenstorrent/0");
  EXPECT_EQ(accelerator_device("/dev/accel/accel0"), "accel/accel0");
  for (const char* other : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/null", "/dev/nvme0n1",
                            "/dev/nvidia", "/home/me/dev/nvidia0", "/dev/dri/", ""})
    EXPECT_FALSE(accelerator_device(other)) << other;
}

TEST(Accelerator, FactsGoThereAndBack) {
  Accelerator one{"nvidia0", "NVIDIA H200", 150'754'820'096, 700, true};
  Accelerator two{"dri/renderD128", "", {}, {}, false};
  std::vector<Fact> facts = to_facts(one);
  for (const Fact& fact : to_facts(two)) facts.push_back(fact);
  facts.push_back({"host", "name", "no device"});
  std::vector<Accelerator> read = accelerators_in(facts);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].device, "dri/renderD128");
  EXPECT_FALSE(read[0].used_by_target);
  EXPECT_FALSE(read[0].memory_bytes);
  EXPECT_EQ(read[1].device, "nvidia0");
  EXPECT_EQ(read[1].name, "NVIDIA H200");
  EXPECT_EQ(read[1].memory_bytes, 150'754'820'096);
  EXPECT_EQ(read[1].power_limit_w, 700);
  EXPECT_TRUE(read[1].used_by_target);
}

TEST(Accelerator, NonsenseIsLeftOut) {
  std::vector<Accelerator> read =
      accelerators_in({{"accelerator nvidia0", "power_limit_w", "1e300"},
                       {"accelerator nvidia0", "power_limit_w", "nan"},
                       {"accelerator nvidia0", "memory_bytes", "much"}});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_FALSE(read[0].power_limit_w);
  EXPECT_FALSE(read[0].memory_bytes);
  std::vector<Fact> many;
  for (int i = 0; i < 1000; ++i) many.push_back({"accelerator " + std::to_string(i), "name", "x"});
  EXPECT_EQ(accelerators_in(many).size(), 64u);
}

}  // namespace
}  // namespace assay::model
