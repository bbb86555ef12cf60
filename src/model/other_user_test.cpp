#include "model/other_user.h"

#include <gtest/gtest.h>

namespace assay::model {
namespace {

TEST(OtherUsers, FactsReadBackAsTheyWere) {
  OtherUsers others;
  others.cpus = {0.5, 0.25, 1.5, 0, 0.125};
  others.largest = {{"spin\n\x1b[2J", 42, 3, "spin.service", 1.5, 2e6, Relation::stranger},
                    {"wrk", 43, 1, "", 0.5, {}, Relation::load_generator}};
  OtherUsers back = others_in(to_facts(others));
  ASSERT_EQ(back.largest.size(), 2u);
  EXPECT_EQ(back.largest[0].name, others.largest[0].name)
      << "kept as it is; who shows it escapes it";
  EXPECT_EQ(back.largest[0].pid, 42);
  EXPECT_EQ(back.largest[0].processes, 3u);
  EXPECT_EQ(back.largest[0].service, "spin.service");
  EXPECT_DOUBLE_EQ(back.largest[0].cpus, 1.5);
  EXPECT_EQ(back.largest[0].disk_bytes_per_s, 2e6);
  EXPECT_EQ(back.largest[0].relation, Relation::stranger);
  EXPECT_EQ(back.largest[1].relation, Relation::load_generator);
  EXPECT_FALSE(back.largest[1].disk_bytes_per_s) << "unknown is not zero";
  EXPECT_EQ(back.cpus_of(Relation::connected), 0.25);
  EXPECT_EQ(back.cpus_of(Relation::unknown), 0.125);
}

TEST(OtherUsers, RunsWithoutThemSayNothing) {
  OtherUsers none = others_in({{"host", "kernel", "6.1"}, {"process 1", "build", "release"}});
  EXPECT_TRUE(none.largest.empty());
  EXPECT_FALSE(none.cpus_of(Relation::stranger)) << "not recorded is not zero";
}

TEST(OtherUsers, NonsenseInAFileIsLeftOut) {
  std::vector<Fact> facts{{"other 1", "pid", "7"},
                          {"other x", "name", "a"},
                          {"other 1", "cpus", "-3"},
                          {"other 1", "relation", "?"},
                          {"others", "stranger_cpus", "inf"},
                          {"others", "kernel_cpus", ""},
                          {"other -1", "name", "b"}};
  for (int i = 0; i < 1000; ++i) facts.push_back({"other " + std::to_string(i + 2), "pid", "9"});
  OtherUsers read = others_in(facts);
  EXPECT_FALSE(read.cpus);
  EXPECT_LE(read.largest.size(), 64u);
  EXPECT_EQ(read.largest[0].cpus, 0);
  EXPECT_EQ(read.largest[0].relation, Relation::unknown);
}

TEST(OtherUsers, TheLargestOfCpuAndOfDiskAreKept) {
  std::vector<OtherUser> users;
  for (int i = 0; i < 20; ++i) {
    users.push_back({"cpu", i + 1, 1, "", 0.01 * i, i == 3 ? 5e6 : 0, Relation::stranger});
  }
  keep_largest(users, 2);
  ASSERT_EQ(users.size(), 3u);
  EXPECT_EQ(users[0].pid, 20);
  EXPECT_EQ(users[1].pid, 19);
  EXPECT_EQ(users[2].pid, 4) << "it wrote most";
}

TEST(OtherUsers, EveryRelationHasANameOfItsOwn) {
  for (const RelationRow& row : kRelations) EXPECT_EQ(relation_of(row.id), row.kind);
  EXPECT_FALSE(relation_of("friend"));
}

}  // namespace
}  // namespace assay::model
