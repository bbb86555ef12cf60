// What an ordinary user could once do to an Assay of root's, tried again.
#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/harness.h"
#include "security/files.h"

namespace assay::kernel_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

// A directory that everybody may write to, as /tmp is, until the test ends.
class SharedDirectory {
 public:
  SharedDirectory() {
    std::string pattern = (fs::temp_directory_path() / "assay-security-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    ::chmod(path_.c_str(), 01777);
  }
  ~SharedDirectory() { fs::remove_all(path_); }
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string path() const { return path_; }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(path_))
      all[entry.path().filename()] = entry.is_regular_file() ? bytes_of(entry.path()) : "";
    return all;
  }

 private:
  std::string path_;
};

std::vector<std::string> as_nobody(std::vector<std::string> argv) {
  argv.insert(argv.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"});
  return argv;
}

// A program where nobody may run it: build directories are often root's alone.
std::string for_nobody(const SharedDirectory& shared, const std::string& program) {
  std::string copy = shared.file(fs::path(program).filename());
  fs::copy_file(program, copy, fs::copy_options::overwrite_existing);
  ::chmod(copy.c_str(), 0755);
  return copy;
}

std::string imported_run(const SharedDirectory& shared, const std::string& name) {
  std::string path = shared.file(name);
  Finished done = run({assay(), "import", std::string(GOLDEN_DIR) + "/stacks.folded", "-o", path});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return path;
}

bool has_sampler(pid_t pid) {
  return bytes_of("/proc/" + std::to_string(pid) + "/maps").find("assay-heap") != std::string::npos;
}

// During an attach, a thread of the target swaps the descriptor of the memory that was made in it.
TEST(HostileTarget, CannotHaveAnotherFileOverwritten) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root, and a target of another user";
  SharedDirectory shared;
  std::string victim = shared.file("victim"), precious(1 << 20, 'p');
  std::ofstream(victim) << precious;
  ::chmod(victim.c_str(), 0644);
  std::string target_program = for_nobody(shared, HOSTILE_TARGET);
  int refused = 0;
  for (int round = 0; round < 8; ++round) {
    Background target(as_nobody({target_program, "swap", victim}));
    ASSERT_EQ(target.read_line(), "ready");
    Finished done = run({assay(), "heap", "-q", "--pid", std::to_string(target.pid()), "--for",
                         "100ms", "--overwrite", "-o", shared.file("run.assay")});
    refused += done.err.find("another file") != std::string::npos ? 1 : 0;
    ASSERT_TRUE(bytes_of(victim) == precious) << "round " << round << ": root overwrote it";
    ASSERT_EQ(fs::file_size(victim), precious.size());
  }
  RecordProperty("swaps_seen_and_refused", refused);
}

// The target writes the process id of root's process into the memory where its children are told
// of.
TEST(HostileTarget, CannotHaveAnotherProcessInjected) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root, and a target of another user";
  SharedDirectory shared;
  Background victim({program("attach_target"), "busy"});
  ASSERT_NE(victim.read_line().find("ready"), std::string::npos);
  std::string target_program = for_nobody(shared, HOSTILE_TARGET);
  Background target(as_nobody({target_program, "claim", std::to_string(victim.pid())}));
  ASSERT_EQ(target.read_line(), "ready");
  std::string path = shared.file("run.assay");
  Finished done = run(
      {assay(), "heap", "-q", "--pid", std::to_string(target.pid()), "--for", "4s", "-o", path});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(has_sampler(target.pid())) << "the target itself was to be sampled";
  EXPECT_FALSE(has_sampler(victim.pid())) << "a stranger was injected";
  EXPECT_TRUE(
      sql(path, "SELECT * FROM process WHERE pid = " + std::to_string(victim.pid())).empty())
      << "the run tells of a stranger";
}

// A journal whose end names a file: SQLite deletes that file, and cuts the run, when it opens it.
TEST(HostileJournal, NothingIsDeletedOrCutByReading) {
  SharedDirectory shared;
  std::string path = imported_run(shared, "run.assay"), other = imported_run(shared, "b.assay");
  std::string victim = shared.file("victim");
  std::ofstream(victim) << "precious";
  auto word = [](uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
    return text;
  };
  std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", run_bytes = bytes_of(path);
  uint32_t page =
      static_cast<unsigned char>(run_bytes[16]) * 256u + static_cast<unsigned char>(run_bytes[17]);
  uint32_t sum = 0;
  for (char c : victim) sum += static_cast<uint32_t>(c);
  std::string cut = magic + word(0) + word(1) + word(1) + word(512) + word(page);
  cut.resize(512);
  std::string deletes = cut + word(0xffffffff) + victim +
                        word(static_cast<uint32_t>(victim.size())) + word(sum) + magic;
  for (const std::string& journal : {cut, deletes}) {
    for (bool foreign : {false, true}) {
      if (foreign && ::geteuid() != 0) continue;  // only root can make another user's
      std::ofstream(path + "-journal", std::ios::binary | std::ios::trunc) << journal;
      uid_t owner = foreign ? kNobody : ::geteuid();
      ASSERT_EQ(::chown((path + "-journal").c_str(), owner, static_cast<gid_t>(-1)), 0);
      auto before = shared.contents();
      std::vector<std::vector<std::string>> commands{{"report", path},
                                                     {"sql", path, "SELECT * FROM info"},
                                                     {"export", path, "--format", "folded"},
                                                     {"diff", path, other},
                                                     {"rules", "test", path}};
      for (std::vector<std::string>& command : commands) {
        command.insert(command.begin(), assay());
        Finished done = run(command);
        if (foreign && command[1] == "report") {
          EXPECT_EQ(done.exit_code, 0) << done.err << "\nanother's journal keeps the run shut";
        }
        ASSERT_TRUE(shared.contents() == before) << command[1] << " changed the directory";
      }
    }
  }
}

// Whatever the umask: what root sees is not for everybody.
TEST(Files, AreForTheirOwnerAlone) {
  SharedDirectory shared;
  mode_t before = ::umask(0);
  std::string path = imported_run(shared, "run.assay");
  std::string report_file = shared.file("report.md"), page = shared.file("page.html"),
              folded = shared.file("x.folded"), svg = shared.file("x.svg");
  EXPECT_EQ(run({assay(), "report", path, "--format", "md", "-o", report_file}).exit_code, 0);
  EXPECT_EQ(run({assay(), "report", path, "--format", "html", "-o", page}).exit_code, 0);
  EXPECT_EQ(run({assay(), "export", path, "--format", "folded", "-o", folded}).exit_code, 0);
  EXPECT_EQ(run({assay(), "export", path, "--format", "svg", "-o", svg}).exit_code, 0);
  ::umask(before);
  for (const std::string& file : {path, report_file, page, folded, svg})
    EXPECT_EQ(mode_of(file), 0600u) << file;
}

TEST(Files, NoLinkIsFollowedWhenOneIsWritten) {
  SharedDirectory shared;
  std::string path = imported_run(shared, "run.assay"), victim = shared.file("victim");
  std::ofstream(victim) << "precious";
  std::string link = shared.file("link");
  fs::create_symlink(victim, link);
  std::vector<std::vector<std::string>> commands{
      {"report", path, "-o", link},
      {"export", path, "--format", "folded", "-o", link},
      {"diff", path, path + ".copy", "-o", link},
      {"import", std::string(GOLDEN_DIR) + "/stacks.folded", "-o", link},
      {"record", "--overwrite", "-o", link, "--", "true"},
      {"heap", "--overwrite", "-o", link, "--", "true"}};
  fs::copy_file(path, path + ".copy");
  for (std::vector<std::string>& command : commands) {
    command.insert(command.begin(), assay());
    Finished done = run(command);
    EXPECT_NE(done.exit_code, 0) << command[1];
    EXPECT_EQ(bytes_of(victim), "precious") << command[1];
    EXPECT_TRUE(fs::is_symlink(link)) << command[1];
  }
}

// Runs in a child with a /dev/shm of its own that has room for almost nothing.
template <class Check>
void with_small_memory(const char* size, const Check& check) {
  pid_t child = ::fork();
  if (child == 0) {
    std::string options = std::string("size=") + size;
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
        ::mount("small", "/dev/shm", "tmpfs", 0, options.c_str()) != 0)
      ::_exit(77);
    check();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "skipped: needs root to mount a small /dev/shm";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see the child's output above";
}

TEST(FullMemory, TheTargetLivesAndTheReportSaysSo) {
  SharedDirectory shared;
  for (const char* size : {"4k", "64k", "256k", "1m"}) {
    SCOPED_TRACE(size);
    with_small_memory(size, [&] {
      std::string path = shared.file(std::string(size) + ".assay");
      Finished done =
          run({assay(), "heap", "-q", "-o", path, "--", "sh", "-c",
               "for i in 1 2 3 4 5 6; do ls -R /etc >/dev/null 2>&1; done; echo whole"});
      EXPECT_EQ(done.exit_code, 0) << done.err;
      EXPECT_THAT(done.out, HasSubstr("whole"));
      // The sampler by itself, where there is no room at all.
      Finished alone = run({"env", "LD_PRELOAD=" HEAP_LIBRARY,
                            "ASSAY_HEAP_CHANNEL=/dev/shm/%p.heap", "ASSAY_HEAP_RATE=1024",
                            "ASSAY_HEAP_RING=4194304", "sh", "-c", "ls -R /etc | sort | wc -l"});
      EXPECT_EQ(alone.exit_code, 0) << "the target died";
    });
  }
}

TEST(FullMemory, NoRoomAnywhereIsSaid) {
  SharedDirectory shared;
  with_small_memory("64k", [&] {
    ::setenv("TMPDIR", "/dev/shm", 1);
    Finished done = run({assay(), "heap", "-q", "-o", shared.file("x.assay"), "--", "true"});
    EXPECT_NE(done.exit_code, 0);
    EXPECT_THAT(done.err, HasSubstr("no room for heap channels"));
  });
}

TEST(Secrets, StayOutOfRunsAndReports) {
  if (std::string why = why_skipped(); !why.empty()) GTEST_SKIP() << why;
  SharedDirectory shared;
  std::string path = shared.file("run.assay");
  Finished done = run({assay(), "record", "-q", "-o", path, "--for", "1s", "--load",
                       "sleep 9 # http://me:hunter1@h/ -H 'Authorization: Bearer hunter2' "
                       "-H 'Cookie: id=hunter3' http://h/?access_token=hunter4",
                       "--", "sleep", "9"});
  ASSERT_TRUE(fs::exists(path)) << done.err;
  std::string all = bytes_of(path);
  for (const char* format : {"text", "md", "json"})
    all += run({assay(), "report", path, "--format", format}).out;
  EXPECT_THAT(all, Not(HasSubstr("hunter")));
  EXPECT_THAT(all, HasSubstr("Authorization: ***"));
}

// Every user of the machine can read the arguments of a process.
TEST(View, TheTokenIsNotAmongTheBrowsersArguments) {
  SharedDirectory shared;
  std::string path = imported_run(shared, "run.assay"), seen = shared.file("seen");
  std::string browser = shared.file("browser");
  std::ofstream(browser) << "#!/bin/sh\nprintf '%s' \"$1\" > " << seen << ".part\n"
                         << "cp \"${1#file://}\" " << seen << ".page\nmv " << seen << ".part "
                         << seen << "\n";
  ::chmod(browser.c_str(), 0755);
  ::setenv("BROWSER", browser.c_str(), 1);
  std::string place;
  {
    Background view({assay(), "view", path});
    std::string url = view.read_line();
    ASSERT_THAT(url, HasSubstr("http://127.0.0.1:"));
    for (int look = 0; look < 1000 && !fs::exists(seen); ++look) ::usleep(10'000);
    std::string argument = bytes_of(seen);
    std::string token = url.substr(url.rfind('/', url.size() - 2) + 1, 32);
    ASSERT_EQ(token.size(), 32u) << url;
    EXPECT_THAT(argument, Not(HasSubstr(token)));
    EXPECT_THAT(bytes_of(seen + ".page"), HasSubstr(token)) << "the page leads there";
    place = argument.substr(std::string("file://").size());
    EXPECT_EQ(mode_of(place), 0600u);
    EXPECT_EQ(mode_of(fs::path(place).parent_path()), 0700u);
    view.signal(SIGTERM);
    view.wait();
  }
  EXPECT_FALSE(fs::exists(place)) << "it is left behind";
  ::unsetenv("BROWSER");
}

}  // namespace
}  // namespace assay::kernel_test
