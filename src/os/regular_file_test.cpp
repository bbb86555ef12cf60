#include "os/regular_file.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::os {
namespace {

namespace fs = std::filesystem;

class RegularFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "assay-regular-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    std::ofstream(dir_ / "file") << "content";
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(RegularFile, IsOpenedForReading) {
  auto fd = open_regular(dir_ / "file");
  ASSERT_TRUE(fd) << fd.error().what;
  char text[16] = {};
  EXPECT_EQ(::read(fd->get(), text, sizeof text), 7);
  EXPECT_STREQ(text, "content");
  EXPECT_LT(::write(fd->get(), "x", 1), 0);
}

// A FIFO without a writer would block its opener, or would see one that does not block.
TEST_F(RegularFile, FifosDirectoriesAndDevicesAreNeverOpened) {
  std::string fifo = dir_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  auto opened = open_regular(fifo);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().what.find("is not a regular file"), std::string::npos);
  UniqueFd writer(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(writer.valid()) << "nothing has it open for reading";
  EXPECT_EQ(errno, ENXIO);
  EXPECT_FALSE(open_regular(dir_));
  EXPECT_FALSE(open_regular("/dev/zero"));
}

TEST_F(RegularFile, LinksAreFollowedOrRefusedAsAsked) {
  fs::create_symlink(dir_ / "file", dir_ / "link");
  EXPECT_TRUE(open_regular(dir_ / "link"));
  EXPECT_FALSE(open_regular(dir_ / "link", Links::refused));
  EXPECT_TRUE(open_regular(dir_ / "file", Links::refused));
}

TEST_F(RegularFile, WhatIsMissingSaysSo) {
  auto missing = open_regular(dir_ / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
}

}  // namespace
}  // namespace assay::os
