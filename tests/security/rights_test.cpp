// With how few rights Assay does its work: what a capture keeps, and what a group of users needs.
#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "kernel/harness.h"
#include "os/sandbox/capture_rights.h"

namespace assay::kernel_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr gid_t kProfilers = 60'100;  // numbers that nobody has
constexpr uid_t kMember = 60'101, kStranger = 60'102, kOther = 60'103;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "assay-rights-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    ::chmod(path_.c_str(), 01777);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::vector<std::string> as(uid_t user, std::vector<std::string> argv, bool profiler = false) {
  std::string number = std::to_string(user);
  std::vector<std::string> all{"setpriv", "--reuid=" + number, "--regid=" + number,
                               profiler ? "--groups=" + std::to_string(kProfilers)
                                        : "--clear-groups",
                               "--inh-caps=-all", "--",
                               // setpriv itself still has the rights of root when it runs a program.
                               "sh", "-c", "exec \"$0\" \"$@\""};
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

std::string line_of(const fs::path& status, const std::string& name) {
  std::ifstream in(status);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  return "";
}

bool wait_until(const std::function<bool()>& done) {
  for (int look = 0; look < 3000; ++look) {
    if (done()) return true;
    ::usleep(10'000);
  }
  return false;
}

TEST(Rights, ACaptureKeepsOnlyWhatItNeeds) {
  if (std::string why = why_skipped(); !why.empty()) GTEST_SKIP() << why;
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root, who has rights to give up";
  Folder folder;
  Background target({program("busy_share"), "--percent", "20", "--for", "60"});
  for (const char* backend : {"perf", "auto"}) {
    std::string path = folder.file(std::string(backend) + ".assay");
    Background capture({assay(), "record", "-q", "--backend", backend, "--for", "60s", "-o", path,
                        "--pid", std::to_string(target.pid())});
    std::string tasks = "/proc/" + std::to_string(capture.pid()) + "/task";
    auto consumer_runs = [&] {
      std::error_code gone;
      for (const auto& task : fs::directory_iterator(tasks, gone))
        if (line_of(task.path() / "status", "Name") == "assay-consumer") return true;
      return false;
    };
    ASSERT_TRUE(wait_until(consumer_runs));
    uint64_t allowed = os::kept_rights_mask({target.pid()});
    int threads = 0;
    for (const auto& task : fs::directory_iterator(tasks)) {
      std::string status = task.path() / "status", name = line_of(status, "Name");
      uint64_t effective = std::stoull("0" + line_of(status, "CapEff"), nullptr, 16);
      uint64_t permitted = std::stoull("0" + line_of(status, "CapPrm"), nullptr, 16);
      EXPECT_EQ(effective & ~allowed, 0u) << name;
      EXPECT_EQ(permitted & ~allowed, 0u) << name;
      EXPECT_EQ(line_of(status, "NoNewPrivs"), "1") << name;
      ++threads;
    }
    EXPECT_GE(threads, 4);
    ::usleep(1'500'000);  // so that there are samples
    capture.signal(SIGINT);
    EXPECT_EQ(capture.wait().exit_code, 0);
    EXPECT_GT(report(path)["quality"]["samples"].get<int>(), 0);
  }
}

// The recipe of docs/security.md: a binary with capabilities that only a group may run.
TEST(Rights, AGroupOfUsersRecordsWithoutRoot) {
  if (std::string why = why_skipped(); !why.empty()) GTEST_SKIP() << why;
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root, to make the users";
  if (kSanitized) GTEST_SKIP() << "skipped: a binary with sanitizers refuses capabilities";
  if (run({"setcap", "-h"}).exit_code == 127) GTEST_SKIP() << "skipped: setcap is missing";
  Folder folder;
  std::string binary = folder.file("assay");
  fs::copy_file(assay(), binary);
  ASSERT_EQ(::chown(binary.c_str(), 0, kProfilers), 0);
  ::chmod(binary.c_str(), 0750);
  Finished set = run({"setcap",
                      "cap_perfmon,cap_bpf,cap_sys_ptrace,cap_dac_read_search,cap_syslog,"
                      "cap_ipc_lock,cap_setuid,cap_setgid,cap_sys_nice=ep",
                      binary});
  if (set.exit_code != 0) GTEST_SKIP() << "skipped: " << set.err;

  std::string busy = folder.file("busy");
  fs::copy_file(program("busy_share"), busy);
  ::chmod(busy.c_str(), 0755);
  Background target(as(kOther, {busy, "--percent", "50", "--for", "60"}));
  ::usleep(300'000);
  std::string pid = std::to_string(target.pid());

  Finished refused = run(as(kStranger, {binary, "--version"}));
  EXPECT_NE(refused.exit_code, 0) << "who is not in the group runs it";

  for (const char* backend : {"perf", "auto"}) {
    std::string path = folder.file(std::string(backend) + ".assay");
    Finished done = run(as(kMember,
                           {binary, "record", "--backend", backend, "--for", "1s", "--group",
                            std::to_string(kProfilers), "-o", path, "--pid", pid},
                           true));
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("busy")) << "names of another user's program";
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, kMember);
    EXPECT_EQ(status.st_gid, kProfilers);
    EXPECT_EQ(status.st_mode & 0777, 0640u);
    int64_t whole =
        sql(path, "SELECT count(*) AS n FROM note WHERE topic IN ('events', 'kernel')").at(0)["n"];
    EXPECT_EQ(whole, 0) << "whole CPUs are seen, with the kernel";
    EXPECT_GT(report(path)["quality"]["samples"].get<int>(), 10);
  }
}

TEST(Rights, DoctorTellsTheLeastForEachFeature) {
  Finished done = run({assay(), "doctor"});
  for (const os::FeatureRights& feature : os::feature_rights())
    EXPECT_THAT(done.out, HasSubstr(feature.feature));
}

TEST(Group, FilesAreForTheirOwnerAndTheGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root, to give files to a group";
  Folder folder;
  std::string run_path = folder.file("run.assay"), folded = std::string(GOLDEN_DIR) + "/stacks.folded";
  std::string group = std::to_string(kProfilers);
  mode_t before = ::umask(0);
  std::vector<std::vector<std::string>> commands{
      {"import", folded, "-o", run_path},
      {"report", run_path, "--format", "html", "-o", folder.file("r.html")},
      {"export", run_path, "-o", folder.file("x.svg")},
      {"diff", run_path, "--vs", run_path, "-o", folder.file("d.md")},
      {"record", "-q", "--for", "1s", "-o", folder.file("rec.assay"), "--", "sleep", "0.2"}};
  for (std::vector<std::string>& command : commands) {
    std::string output = *(std::ranges::find(command, "-o") + 1);
    command.insert(command.begin() + 1, {"--group", group});
    command.insert(command.begin(), assay());
    Finished done = run(command);
    if (command[1] == "record" && done.exit_code != 0) continue;  // no events here
    EXPECT_EQ(done.exit_code, 0) << command[1] << done.err;
    struct stat status {};
    ASSERT_EQ(::stat(output.c_str(), &status), 0) << command[1];
    EXPECT_EQ(status.st_mode & 0777, 0640u) << command[1];
    EXPECT_EQ(status.st_gid, kProfilers) << command[1];
  }
  ::umask(before);
  // A member reads it; who is in no such group does not.
  ::chmod(fs::path(run_path).parent_path().c_str(), 0755);
  std::string binary = folder.file("assay");
  fs::copy_file(assay(), binary);
  ::chmod(binary.c_str(), 0755);
  EXPECT_EQ(run(as(kMember, {binary, "report", run_path}, true)).exit_code, 0);
  EXPECT_NE(run(as(kStranger, {binary, "report", run_path})).exit_code, 0);
}

TEST(Group, OneThatIsNotThereOrNotOursIsAnError) {
  Folder folder;
  std::string folded = std::string(GOLDEN_DIR) + "/stacks.folded";
  Finished none =
      run({assay(), "import", "--group", "no-such-group", folded, "-o", folder.file("x.assay")});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no group no-such-group"));
  if (::geteuid() != 0) return;
  std::string binary = folder.file("assay"), input = folder.file("in.folded");
  fs::copy_file(assay(), binary);
  fs::copy_file(folded, input);
  for (const std::string& path : {binary, input}) ::chmod(path.c_str(), 0755);
  Finished others = run(as(kStranger, {binary, "import", "--group", std::to_string(kProfilers),
                                       input, "-o", folder.file("y.assay")}));
  EXPECT_EQ(others.exit_code, 1);
  EXPECT_THAT(others.err, HasSubstr("cannot be given to the group"));
  EXPECT_FALSE(fs::exists(folder.file("y.assay")));
}

}  // namespace
}  // namespace assay::kernel_test
