#include "evidence/data_names.h"

#include "evidence/testing/evidence_fixture.h"

namespace assay::evidence {
namespace {

class DataNamesTest : public testing::EvidenceTest {
 protected:
  DataNamesTest() {
    tasks_.add(kPid, kPid);
    program_ = spaces_.of(kPid).find(kCode)->module;
    // The address as the symbolizer wants it: counted from the first code mapping.
    symbolizer_.name_data(program_, 0x31000, "queue_lock");
  }
  static constexpr uint64_t kLock = kCode + 0x30000;  // beyond the code, in .data

  model::ModuleId program_;
  FrameNamer namer_{symbolizer_, sink_};
  DataNames names_{spaces_, tasks_, namer_};
};

TEST_F(DataNamesTest, AGlobalLockIsNamedByTheModuleBelowItOnce) {
  names_.waited_on(kPid, kLock);
  names_.waited_on(kPid, kLock);
  namer_.finish();
  ASSERT_EQ(sink_.data_names.size(), 1u);
  EXPECT_EQ(sink_.data_names[0].name, "queue_lock");
  EXPECT_EQ(sink_.data_names[0].process, *tasks_.process(kPid));
  EXPECT_EQ(sink_.data_names[0].address, kLock);
}

TEST_F(DataNamesTest, AnAddressBelowAllCodeHasNoName) {
  symbolizer_.name_data(program_, 0x100 - kCode + 0x1000, "wrong");
  names_.waited_on(kPid, 0x100);
  namer_.finish();
  EXPECT_TRUE(sink_.data_names.empty());
}

TEST_F(DataNamesTest, AProcessThatIsNotTheTargetsIsNotAskedFor) {
  map_program(99);
  names_.waited_on(99, kLock);
  namer_.finish();
  EXPECT_TRUE(sink_.data_names.empty());
}

TEST_F(DataNamesTest, ANewImageIsAskedForAnew) {
  map_program(kPid + 1);
  tasks_.add(kPid + 1, kPid + 1);
  names_.waited_on(kPid, kLock);
  names_.waited_on(kPid + 1, kLock);
  names_.forget(kPid);
  names_.waited_on(kPid, kLock);
  names_.waited_on(kPid + 1, kLock);
  namer_.finish();
  EXPECT_EQ(sink_.data_names.size(), 3u) << "the other process was not forgotten";
}

}  // namespace
}  // namespace assay::evidence
