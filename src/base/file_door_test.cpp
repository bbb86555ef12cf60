#include "base/file_door.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing/temporary_directory.h"

namespace assay {
namespace {

class FileDoorTest : public testing::Test {
 protected:
  std::string file(const std::string& name) {
    std::ofstream(folder_ / name) << "text";
    return folder_ / name;
  }
  TemporaryDirectory folder_;
};

TEST_F(FileDoorTest, OnlyRegularFilesAreRuns) {
  std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(file_door().open(pipe, Purpose::run).error().what, pipe + " is not a regular file")
      << "and nobody waits for its writer";
  EXPECT_EQ(file_door().open(folder_.path(), Purpose::run).error().what,
            folder_.path() + " is a directory, not a run file");
  EXPECT_EQ(file_door().open("/dev/null", Purpose::source).error().what,
            "/dev/null is not a regular file");
  EXPECT_EQ(file_door().open(folder_ / "none", Purpose::run).error().code, ENOENT);
}

TEST_F(FileDoorTest, LinksLeadToRunsAndNotToJournals) {
  std::string target = file("run"), link = folder_ / "link";
  std::filesystem::create_symlink(target, link);
  auto run = file_door().open(link, Purpose::run);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->real_path, std::filesystem::canonical(target));
  EXPECT_FALSE(file_door().open(link, Purpose::journal));
  EXPECT_TRUE(file_door().open(target, Purpose::journal));
}

TEST_F(FileDoorTest, TemporaryFilesHaveNoName) {
  auto fd = file_door().temporary();
  ASSERT_TRUE(fd) << fd.error().text();
  struct stat status {};
  ASSERT_EQ(::fstat(fd->get(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
  EXPECT_EQ(::write(fd->get(), "x", 1), 1);
}

}  // namespace
}  // namespace assay
