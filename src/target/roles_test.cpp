#include "target/roles.h"

#include <gmock/gmock.h>

namespace assay::target {
namespace {

using testing::ElementsAre;

TEST(Roles, OneOnTopIsMainAndItsLikesAreWorkers) {
  RoleBook book;
  EXPECT_THAT(book.assign_roots({"/usr/sbin/nginx"}), ElementsAre("main"));
  EXPECT_EQ(book.assign("/usr/sbin/nginx"), "worker 0");
  EXPECT_EQ(book.assign("/usr/sbin/nginx"), "worker 1");
  EXPECT_EQ(book.assign("/bin/gzip"), "gzip");
  EXPECT_EQ(book.assign("/opt/gzip"), "gzip 1");
}

TEST(Roles, SeveralOnTop) {
  EXPECT_THAT(RoleBook().assign_roots({"/a/srv", "/a/srv"}), ElementsAre("worker 0", "worker 1"));
  EXPECT_THAT(RoleBook().assign_roots({"/a/srv", "/b/db", "/a/srv"}),
              ElementsAre("srv", "db", "srv 1"));
}

TEST(Roles, AForkThatExecsGivesItsNumberBack) {
  RoleBook book;
  book.assign_roots({"/srv"});
  EXPECT_EQ(book.assign("/srv"), "worker 0");
  std::string fork = book.assign("/srv");
  book.give_back(fork);
  EXPECT_EQ(book.assign("/bin/sh"), "sh");
  EXPECT_EQ(book.assign("/srv"), "worker 1");
  book.give_back("worker 0");  // not the last one: its number stays taken
  EXPECT_EQ(book.assign("/srv"), "worker 2");
}

TEST(Roles, ProgramNames) {
  EXPECT_EQ(program_name("/srv/app (deleted)"), "app");
  EXPECT_EQ(program_name("app"), "app");
  EXPECT_EQ(program_name(""), "");
  RoleBook book;
  book.assign_roots({"/srv"});
  EXPECT_EQ(book.assign(""), "process");
}

}  // namespace
}  // namespace assay::target
