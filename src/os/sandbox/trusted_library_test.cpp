#include "os/sandbox/trusted_library.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"

namespace assay::os {
namespace {

TEST(TrustedLibrary, TheSystemsOwnIsFoundWithoutItsLinks) {
  auto libc = find_trusted_library("libc.so.6");
  ASSERT_TRUE(libc) << libc.error().what;
  EXPECT_EQ(std::filesystem::canonical(*libc), *libc);
}

TEST(TrustedLibrary, OneThatIsNowhereIsNotFound) {
  auto none = find_trusted_library("libthat-does-not-exist.so.1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ENOENT);
}

TEST(TrustedLibrary, TheEnvironmentDoesNotLeadToAnother) {
  TemporaryDirectory folder;
  std::ofstream(folder.path() + "/libonly-here.so.1") << "x";
  ::setenv("LD_LIBRARY_PATH", folder.path().c_str(), 1);
  EXPECT_FALSE(find_trusted_library("libonly-here.so.1"));
  ::unsetenv("LD_LIBRARY_PATH");
}

// Below /tmp, which everybody may write to: whatever the file itself allows.
TEST(TrustedLibrary, AFolderThatOthersMayWriteToIsRefused) {
  TemporaryDirectory folder;
  std::string path = folder.path() + "/libfake.so.1";
  std::ofstream(path) << "x";
  ::chmod(path.c_str(), 0644);
  const char* folders[]{folder.path().c_str()};
  auto found = find_trusted_library("libfake.so.1", folders);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().code, ENOENT);
}

TEST(TrustedLibrary, ALinkIsJudgedByWhereItLeads) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root";
  // A folder of root's alone, on a way of folders of root's alone.
  char name[] = "/var/lib/assay-trusted-XXXXXX";
  if (::mkdtemp(name) == nullptr) GTEST_SKIP() << "skipped: /var/lib cannot be written to";
  std::string own = name;
  TemporaryDirectory strangers;
  std::ofstream(strangers.path() + "/real.so") << "x";
  std::ofstream(own + "/good.so") << "x";
  ::chmod((own + "/good.so").c_str(), 0644);
  std::filesystem::create_symlink(strangers.path() + "/real.so", own + "/linked.so");
  EXPECT_TRUE(check_trusted_file(own + "/good.so"));
  EXPECT_FALSE(check_trusted_file(own + "/linked.so"));
  ::chmod((own + "/good.so").c_str(), 0664);
  EXPECT_FALSE(check_trusted_file(own + "/good.so")) << "its group may change it";
  ::chmod((own + "/good.so").c_str(), 0644);
  ASSERT_EQ(::chown((own + "/good.so").c_str(), 65534, 0), 0);
  EXPECT_FALSE(check_trusted_file(own + "/good.so")) << "its owner may change it";
  std::filesystem::remove_all(own);
}

}  // namespace
}  // namespace assay::os
