#include "model/address_space.h"

#include <gtest/gtest.h>

namespace assay::model {
namespace {

Mapping mapping(uint64_t start, uint64_t end, uint64_t offset, uint32_t module) {
  return Mapping{start, end, offset, ModuleId{module}};
}

TEST(AddressSpace, FindsTheMappingThatHoldsAnAddress) {
  AddressSpace space;
  space.map(mapping(0x1000, 0x3000, 0x200, 1));
  space.map(mapping(0x5000, 0x6000, 0, 2));
  EXPECT_EQ(space.find(0xfff), nullptr);
  ASSERT_NE(space.find(0x1000), nullptr);
  EXPECT_EQ(space.find(0x2fff)->to_module_address(0x2fff), 0x21ffu);
  EXPECT_EQ(space.find(0x3000), nullptr);
  EXPECT_EQ(space.find(0x5800)->module, ModuleId{2});
}

TEST(AddressSpace, AnewMappingCutsAwayWhatItCovers) {
  AddressSpace space;
  space.map(mapping(0x1000, 0x9000, 0x100, 1));
  space.map(mapping(0x3000, 0x5000, 0, 2));
  EXPECT_EQ(space.find(0x2000)->module, ModuleId{1});
  EXPECT_EQ(space.find(0x4000)->module, ModuleId{2});
  ASSERT_NE(space.find(0x5000), nullptr);
  EXPECT_EQ(space.find(0x5000)->module, ModuleId{1});
  EXPECT_EQ(space.find(0x5000)->to_module_address(0x5000), 0x4100u);
  space.map(mapping(0, 0x10000, 0, 3));
  EXPECT_EQ(space.all().size(), 1u);
  EXPECT_EQ(space.find(0x8000)->module, ModuleId{3});
}

TEST(AddressSpace, ChangesAreCounted) {
  AddressSpace space;
  uint64_t before = space.generation();
  space.map(mapping(0x1000, 0x2000, 0, 1));
  EXPECT_NE(space.generation(), before);
}

}  // namespace
}  // namespace assay::model
