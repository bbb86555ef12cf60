#include "os/sandbox/worker.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/private_file.h"
#include "base/sanitized.h"
#include "base/testing/temporary_directory.h"
#include "os/sandbox/confine.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

using testing::HasSubstr;

class Worker : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text = "text") {
    std::string path = directory_ / (name);
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
    return path;
  }
  static std::string text_of(const std::string& path) {
    return read_text_file(path).value_or("nothing");
  }
  // The exit code of work that runs with these rules.
  static int code(const WorkerRules& rules, const std::function<int()>& work) {
    auto ended = run_in_worker(rules, work);
    EXPECT_TRUE(ended) << ended.error().text();
    return ended.value_or(-1);
  }

  TemporaryDirectory directory_;
  WorkerRules rules_{.reads = "a file"};
};

TEST_F(Worker, GivesItsExitCodeBack) {
  EXPECT_EQ(code(rules_, [] { return 0; }), 0);
  EXPECT_EQ(code(rules_, [] { return 3; }), 3);
}

TEST_F(Worker, HasNoPrivilegeAndCanReachNothing) {
  if (kSanitized) GTEST_SKIP() << "skipped: no filter under sanitizers";
  std::string secret = file("secret"), made = directory_ / ("made");
  EXPECT_EQ(code(rules_, [&] {
              int found = 0;
              if (::open(secret.c_str(), O_RDONLY) >= 0) found |= 1;
              if (::open(made.c_str(), O_WRONLY | O_CREAT, 0600) >= 0) found |= 2;
              if (::unlink(secret.c_str()) == 0) found |= 4;
              if (::socket(AF_INET, SOCK_STREAM, 0) >= 0) found |= 8;
              if (::syscall(SYS_fork) >= 0 || errno != EPERM) found |= 16;
              char* none[] = {nullptr};
              if (::execve("/bin/true", none, none) == 0 || errno != EPERM) found |= 32;
              if (::kill(1, 0) == 0 || errno != EPERM) found |= 64;
              return found;
            }),
            0);
  EXPECT_TRUE(std::filesystem::exists(secret));
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST_F(Worker, OpensWhatTheCommandLineNamesAndNothingElse) {
  std::string run = file("run.assay", "run"), other = file("other.assay");
  file("run.assay-journal", "journal");
  rules_.files.runs = {run};
  EXPECT_EQ(code(rules_, [&] {
              auto found = file_door().open(run, Purpose::run);
              if (!found || !found->fd.valid()) return 1;
              char text[8]{};
              if (::pread(found->fd.get(), text, 3, 0) != 3 || std::string(text) != "run") return 2;
              if (!file_door().open(found->real_path + "-journal", Purpose::journal)) return 3;
              if (file_door().open(other, Purpose::run)) return 4;
              if (file_door().open(run, Purpose::capture)) return 5;
              if (file_door().open(other, Purpose::journal)) return 6;
              if (file_door().open(other, Purpose::source)) return 7;
              if (file_door().open("/bin/sh", Purpose::module)) return 8;
              if (file_door().open(other, Purpose::kernel_symbols)) return 9;
              if (PrivateFile::create(other, Existing::replace)) return 10;
              return 0;
            }),
            0);
  EXPECT_EQ(text_of(other), "text");
}

TEST_F(Worker, WhatItMakesIsThereWholeOrNotAtAll) {
  std::string output = file("report.txt", "old"), folder = directory_ / ("out");
  std::filesystem::create_directory(folder);
  rules_.files.outputs = {output};
  rules_.files.output_folders = {folder};
  auto write = [&](const std::string& path, bool commit) {
    auto made = PrivateFile::create(path, Existing::replace);
    if (!made || !made->write("new")) return 1;
    return commit && !made->commit() ? 2 : 0;
  };
  EXPECT_EQ(code(rules_, [&] { return write(output, false); }), 0);
  EXPECT_EQ(text_of(output), "old");
  EXPECT_EQ(code(rules_, [&] { return write(output, true); }), 0);
  EXPECT_EQ(text_of(output), "new");
  struct stat status {};
  ASSERT_EQ(::stat(output.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(status.st_uid, ::geteuid()) << "it belongs to who asked for it";
  EXPECT_EQ(code(rules_, [&] { return write(folder + "/one", true); }), 0);
  EXPECT_EQ(text_of(folder + "/one"), "new");
  EXPECT_EQ(code(rules_, [&] { return write(folder + "/../escaped", true); }), 1);
  EXPECT_EQ(code(rules_, [&] { return write(folder + "/sub/../one", true); }), 1);
  // Killed between: nothing stays beside the place.
  auto killed = run_in_worker(rules_, [&] {
    auto made = PrivateFile::create(output, Existing::replace);
    if (made) ::raise(SIGKILL);
    return 1;
  });
  ASSERT_FALSE(killed);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_.path()))
    ++files;
  EXPECT_EQ(files, 2u) << "the report and the folder";
}

TEST_F(Worker, ACrashIsAnErrorAndNoMore) {
  auto crashed = run_in_worker(rules_, [] {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
    return 0;
  });
  ASSERT_FALSE(crashed);
  EXPECT_THAT(crashed.error().what, HasSubstr("reading a file ended by a signal"));
}

TEST_F(Worker, TooLittleMemoryIsSaid) {
  if (kSanitized) GTEST_SKIP() << "skipped: no limit under sanitizers";
  rules_.heap_bytes = 64 << 20;
  auto ended = run_in_worker(rules_, [] {
    std::vector<std::string> hoard;
    for (;;) hoard.emplace_back(1 << 20, 'x');
    return 0;
  });
  ASSERT_FALSE(ended);
  EXPECT_THAT(ended.error().what,
              HasSubstr("a file needs more memory than the 64 MB that reading may take"));
}

TEST_F(Worker, TellsItsStarter) {
  std::string told;
  rules_.told = [&](const std::string& text) { told = text; };
  EXPECT_EQ(code(rules_, [] { return tell_starter("here") ? 0 : 1; }), 0);
  EXPECT_EQ(told, "here");
}

TEST_F(Worker, HasTemporaryFilesWithoutAName) {
  EXPECT_EQ(code(rules_, [] {
              auto fd = file_door().temporary();
              return fd && ::write(fd->get(), "x", 1) == 1 && ::ftruncate(fd->get(), 0) == 0 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace assay::os
