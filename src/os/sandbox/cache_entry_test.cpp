#include "os/sandbox/cache_entry.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"
#include "os/sandbox/worker.h"

namespace assay::os {
namespace {

namespace fs = std::filesystem;

class CacheEntry : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = directory_ / "cache";
    ASSERT_EQ(::mkdir(folder_.c_str(), 0755), 0);
    ASSERT_EQ(::mkdir((folder_ + "/unwind").c_str(), 0700), 0);
    table_ = make(folder_ + "/unwind/0a1b-2c.v7");
    kernel_ = make(folder_ + "/kernel-1b4e-2fa1.symbols");
  }
  static std::string make(const std::string& path) {
    std::ofstream(path) << "entry";
    ::chmod(path.c_str(), 0600);
    return path;
  }
  bool opens(const std::string& path) const {
    auto found = open_cache_entry(folder_, path);
    return found && found->fd.valid();
  }

  TemporaryDirectory directory_;
  std::string folder_, table_, kernel_;
};

TEST_F(CacheEntry, TablesAndKernelSymbolsAreRead) {
  EXPECT_TRUE(opens(table_));
  EXPECT_TRUE(opens(kernel_));
  EXPECT_FALSE(opens(folder_ + "/unwind/0a1b-2d.v7")) << "there is none";
}

// Each of these files is there, and would be opened if its name were believed.
TEST_F(CacheEntry, HostileNamesAreRefused) {
  make(directory_ / "secret");
  make(directory_ / "0a.v7");
  for (const char* name : {"/unwind/../../secret", "/../secret", "/unwind/../../0a.v7",
                           "/unwind/../kernel-1b4e-2fa1.symbols", "/unwind//0a1b-2c.v7",
                           "/./unwind/0a1b-2c.v7", "/unwind/./0a1b-2c.v7", "/unwind", "/", "",
                           "/unwind/", "/0a1b-2c.v7", "/unwind/kernel-1b4e-2fa1.symbols"}) {
    EXPECT_FALSE(opens(folder_ + name)) << name;
  }
  EXPECT_FALSE(opens(directory_ / "secret"));
  EXPECT_FALSE(opens("/etc/passwd"));
  EXPECT_FALSE(opens(folder_ + std::string("/unwind/0a1b-2c.v7\0x", 20)));
  for (const char* name :
       {"0A1B.v7", "0a1b", "0a1b.v", "0a1b.vx", ".v7", "0a1b.v7.12.1", "x0.v7"}) {
    EXPECT_FALSE(opens(make(folder_ + "/unwind/" + name))) << name;
  }
  for (const char* name :
       {"kernel-.symbols", "kernel-xyz.symbols", "kernel-1b", "kernel.symbols"}) {
    EXPECT_FALSE(opens(make(folder_ + "/" + name))) << name;
  }
  EXPECT_FALSE(open_cache_entry("", "/unwind/0a1b-2c.v7")) << "no cache";
}

TEST_F(CacheEntry, LinksAreNotFollowed) {
  fs::create_symlink(table_, folder_ + "/unwind/0f.v7");
  EXPECT_FALSE(opens(folder_ + "/unwind/0f.v7"));
  fs::rename(folder_ + "/unwind", folder_ + "/elsewhere");
  fs::create_directory_symlink(folder_ + "/elsewhere", folder_ + "/unwind");
  EXPECT_FALSE(opens(table_)) << "a link in the place of the folder";
  fs::create_directory_symlink(folder_, directory_ / "link");
  EXPECT_FALSE(open_cache_entry(directory_ / "link", directory_ / "link/kernel-1b4e-2fa1.symbols"));
}

TEST_F(CacheEntry, WhatOthersCouldHaveWrittenIsRefused) {
  ASSERT_EQ(::chmod(table_.c_str(), 0620), 0);
  EXPECT_FALSE(opens(table_));
  ASSERT_EQ(::chmod(table_.c_str(), 0600), 0);
  ASSERT_EQ(::chmod((folder_ + "/unwind").c_str(), 0777), 0);
  EXPECT_FALSE(opens(table_)) << "the folder";
  ASSERT_EQ(::chmod((folder_ + "/unwind").c_str(), 0700), 0);
  ASSERT_TRUE(opens(table_));
  ASSERT_EQ(::mkfifo((folder_ + "/unwind/0e.v7").c_str(), 0600), 0);
  EXPECT_FALSE(opens(folder_ + "/unwind/0e.v7")) << "and it does not wait for a writer";
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can give a file to another user";
  ASSERT_EQ(::chown(table_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(opens(table_)) << "the entry of another user";
}

// Through the door: a worker reads entries where its command may, and can store none.
TEST_F(CacheEntry, AWorkerReadsThemAndStoresNothing) {
  auto ended = [&](const WorkerRules& rules, const std::function<int()>& work) {
    auto code = run_in_worker(rules, work);
    return code ? *code : -1;
  };
  WorkerRules rules{.reads = "a file"};
  auto read_both = [&] {
    int found = 0;
    for (const std::string& path : {table_, kernel_}) {
      char text[8] = {};
      auto entry = file_door().open(path, Purpose::cache);
      if (entry && ::read(entry->fd.get(), text, sizeof text) == 5) ++found;
    }
    return found;
  };
  EXPECT_EQ(ended(rules, read_both), 0) << "a command that names no cache has none";
  rules.files.cache = folder_;
  EXPECT_EQ(ended(rules, read_both), 2);
  EXPECT_EQ(ended(rules,
                  [&] {
                    int made = 0;
                    for (const std::string& path : {table_, folder_ + "/unwind/0d.v7"})
                      for (Existing existing : {Existing::refuse, Existing::replace})
                        if (file_door().create(path, existing)) ++made;
                    auto entry = file_door().open(table_, Purpose::cache);
                    if (!entry) return 50;
                    if (::write(entry->fd.get(), "x", 1) >= 0) ++made;
                    if (file_door().open(table_, Purpose::run)) ++made;
                    return made;
                  }),
            0);
  EXPECT_EQ(fs::file_size(table_), 5u);
}

}  // namespace
}  // namespace assay::os
