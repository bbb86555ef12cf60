// What parses runs and captures has no privilege: a parser that was taken over (programs/curious.cpp)
// tries to read, write, connect, trace and start, and fails.
#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "kernel/harness.h"
#include "security/files.h"

namespace assay::kernel_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Confined : public testing::Test {
 protected:
  Confined() {
    std::string pattern = (fs::temp_directory_path() / "assay-confined-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    std::ofstream(file("secret")) << "secret";
    ::chmod(file("secret").c_str(), 0600);
    Finished done = run({assay(), "import", kFolded, "-o", file("run.assay")});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    fs::copy_file(file("run.assay"), file("b.assay"));
  }
  ~Confined() override { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::vector<std::string> curious(std::vector<std::string> command, bool stops = false) const {
    std::vector<std::string> argv{"env", "LD_PRELOAD=" CURIOUS_LIBRARY,
                                  "CURIOUS_SECRET=" + file("secret")};
    if (stops) argv.emplace_back("CURIOUS_STOPS=1");
    argv.push_back(assay());
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  std::vector<std::vector<std::string>> commands() const {
    std::string run = file("run.assay"), b = file("b.assay");
    return {{"report", run},
            {"report", run, "-o", file("r.txt")},
            {"report", run, "--source"},
            {"report", run, "--format", "html", "-o", file("r.html")},
            {"sql", run, "SELECT * FROM thread"},
            {"export", run, "--format", "folded"},
            {"export", run, "-o", file("r.svg")},
            {"export", run, "--format", "folded", "--split", "process", "-o", file("split")},
            {"export", kFolded, "--format", "tsv"},
            {"import", kFolded, "-o", file("i.assay")},
            {"diff", run, "--vs", b},
            {"diff", run, "--vs", b, "-o", file("d.html")},
            {"rules", "test", run}};
  }

  const std::string kFolded = std::string(GOLDEN_DIR) + "/stacks.folded";

 private:
  std::string path_;
};

// The line of /proc/PID/status, without its name.
std::string status_of(pid_t pid, const std::string& name) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

pid_t child_of(pid_t pid) {
  std::string task = std::to_string(pid);
  std::ifstream in("/proc/" + task + "/task/" + task + "/children");
  pid_t child = 0;
  in >> child;
  return child;
}

bool wait_until(const std::function<bool()>& done) {
  for (int look = 0; look < 3000; ++look) {
    if (done()) return true;
    ::usleep(10'000);
  }
  return false;
}

void expect_no_privilege(pid_t pid) {
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    EXPECT_EQ(status_of(pid, set), "0000000000000000") << set;
  EXPECT_EQ(status_of(pid, "NoNewPrivs"), "1");
  EXPECT_EQ(status_of(pid, "Seccomp"), "2");
  if (::geteuid() != 0) return;
  std::string nobody = std::to_string(kNobody), tab = "\t";
  EXPECT_EQ(status_of(pid, "Uid"), nobody + tab + nobody + tab + nobody + tab + nobody);
  EXPECT_EQ(status_of(pid, "CapBnd"), "0000000000000000");
}

TEST_F(Confined, AParserThatWasTakenOverCanReachNothing) {
  if (kSanitized) GTEST_SKIP() << "skipped: no filter under sanitizers";
  for (const std::vector<std::string>& command : commands()) {
    std::string shown = testing::PrintToString(command);
    Finished done = run(curious(command));
    EXPECT_EQ(done.exit_code, 0) << shown << done.err;
    EXPECT_THAT(done.err, HasSubstr("curious: parsing")) << shown;
    size_t at = done.err.find("curious: parsing") + 17;
    EXPECT_THAT(done.err.substr(std::min(at, done.err.size())), Not(HasSubstr("curious:")))
        << shown;
    EXPECT_EQ(bytes_of(file("secret")), "secret") << shown;
  }
}

TEST_F(Confined, WhileItParsesItHasNoCapabilityAndAFilter) {
  if (kSanitized) GTEST_SKIP() << "skipped: no filter under sanitizers";
  for (const std::vector<std::string>& command : commands()) {
    SCOPED_TRACE(testing::PrintToString(command));
    Background parser(curious(command, true));
    pid_t worker = 0;
    ASSERT_TRUE(wait_until([&] {
      worker = child_of(parser.pid());
      return worker > 0 && status_of(worker, "State").starts_with("T");
    }));
    expect_no_privilege(worker);
    ::kill(worker, SIGCONT);
    EXPECT_EQ(parser.wait().exit_code, 0);
  }
}

TEST_F(Confined, ThePageIsServedWithoutPrivilege) {
  if (kSanitized) GTEST_SKIP() << "skipped: no filter under sanitizers";
  Background view({assay(), "view", "--no-browser", file("run.assay")});
  std::string url = view.read_line();
  ASSERT_THAT(url, HasSubstr("http://127.0.0.1:"));
  pid_t worker = child_of(view.pid());
  ASSERT_GT(worker, 0);
  expect_no_privilege(worker);
  Finished page = run({"curl", "-sS", "-o", file("page"), "-w", "%{http_code}", url});
  if (page.exit_code != 127) {
    EXPECT_EQ(page.out, "200") << page.err;
  }
  view.signal(SIGTERM);
  EXPECT_EQ(view.wait().exit_code, 0);
  EXPECT_TRUE(wait_until([&] { return ::kill(worker, 0) != 0; })) << "the server goes on alone";
}

TEST_F(Confined, WhoEndsTheCommandEndsTheParser) {
  Background parser(curious({"report", file("run.assay")}, true));
  pid_t worker = 0;
  ASSERT_TRUE(wait_until([&] {
    worker = child_of(parser.pid());
    return worker > 0 && status_of(worker, "State").starts_with("T");
  }));
  parser.signal(SIGKILL);
  EXPECT_TRUE(wait_until([&] { return ::kill(worker, 0) != 0; }));
}

// Root's run, in a directory that only root may enter, written into a directory of another user.
TEST_F(Confined, RootReadsItsOwnRunsAndWritesWhereItMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root";
  fs::create_directory(file("theirs"));
  ASSERT_EQ(::chown(file("theirs").c_str(), kNobody - 1, kNobody - 1), 0);
  ::chmod(file("theirs").c_str(), 0700);
  std::string report = file("theirs") + "/report.md";
  Finished done = run({assay(), "report", file("run.assay"), "--format", "md", "-o", report});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  struct stat status {};
  ASSERT_EQ(::stat(report.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0u);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_GT(status.st_size, 100);
}

TEST_F(Confined, TooLittleMemoryIsSaid) {
  if (kSanitized) GTEST_SKIP() << "skipped: no limit under sanitizers";
  std::ofstream large(file("large.folded"));
  for (int i = 0; i < 400'000; ++i) large << "main;function_" << i << ";work_" << i << " 1\n";
  large.close();
  Finished done = run({"prlimit", "--data=40000000", assay(), "import", file("large.folded"), "-o",
                       file("large.assay")});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("needs more memory than the 38 MB that reading may take"));
  EXPECT_FALSE(fs::exists(file("large.assay")));
}

}  // namespace
}  // namespace assay::kernel_test
