// The BPF backend against programs whose behaviour is known, against the other backend, and against
// the unwinder in user space.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

using testing::HasSubstr;

class BpfBackend : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string why = why_no_bpf();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  static std::string why_no_bpf() {
    if (std::string why = why_skipped(); !why.empty()) return why;
    Finished tried = run({assay(), "record", "-q", "--backend", "bpf", "-o", run_file("probe"),
                          "--for", "200ms", "--", "sleep", "0.1"});
    return tried.exit_code == 0 ? "" : "skipped: no BPF here: " + tried.err;
  }

  // Records a program with the backend checking itself; returns the numbers it prints, by name.
  std::map<std::string, uint64_t> check(const std::string& what, const std::string& name,
                                        std::vector<std::string> arguments) {
    path = run_file(name);
    std::vector<std::string> argv{assay(), "record", "-q", "--backend", "bpf",        "--freq",
                                  "997",   "-o",     path, "--",        program(name)};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    setenv("ASSAY_BPF_CHECK", what.c_str(), 1);
    Finished finished = run(argv);
    unsetenv("ASSAY_BPF_CHECK");
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    told = finished.err;
    std::map<std::string, uint64_t> numbers;
    std::istringstream lines(finished.err);
    std::string key;
    uint64_t value = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (words >> key >> value) numbers[key] += value;
    }
    return numbers;
  }

  int64_t number(const std::string& query) {
    auto rows = sql(path, query);
    return rows.empty() ? -1 : rows.at(0)["n"].get<int64_t>();
  }

  std::string path;
  std::string told;
};

TEST_F(BpfBackend, NothingThatTheCacheSaysDiffersFromAWalk) {
  uint64_t checked = 0;
  for (const char* name : {"pipe_pingpong", "mutex_contend", "busy_share"}) {
    auto numbers = check("cache", name, {"--for", "1"});
    EXPECT_EQ(numbers["cache_wrong"], 0u) << name << "\n" << told;
    checked += numbers["cache_checked"];
  }
  EXPECT_GT(checked, 2000u);
}

// Every walk comes with its registers and its bytes; walking those in user space must give the same
// frames. A copy that is too short (the kernel reads further) does not count as a difference.
TEST_F(BpfBackend, WalksAreThoseOfTheUnwinder) {
  uint64_t compared = 0;
  for (const char* name : {"thread_churn", "mutex_contend", "fork_tree", "busy_share"}) {
    auto numbers = check("truth", name, {"--for", "1"});
    EXPECT_THAT(told, testing::Not(HasSubstr("other frames"))) << name;
    compared += numbers["compared"];
  }
  EXPECT_GT(compared, 300u);
}

TEST_F(BpfBackend, StacksAreComplete) {
  // Samples in the middle of an exec have no stack to walk: two are allowed beside the 0.5 %.
  check("report", "mutex_contend", {"--for", "1"});
  nlohmann::json quality = report(path)["quality"];
  double samples = quality["samples"];
  EXPECT_GE(quality["complete_share"].get<double>() * samples, 0.995 * samples - 2)
      << quality.dump();
  EXPECT_EQ(number("SELECT count(*) AS n FROM waits WHERE runqueue_ns < duration_ns AND "
                   "stack_text(stack) LIKE '%pthread_mutex_lock%' AND stack_text(stack) NOT LIKE "
                   "'%critical_section%'"),
            0);
  check("report", "deep_stack", {"--depth", "300", "--for", "1"});
  EXPECT_GT(number("SELECT count(*) AS n FROM waits WHERE "
                   "length(stack_text(stack)) - length(replace(stack_text(stack), 'descend', '')) "
                   ">= 300 * length('descend')"),
            10);
}

TEST_F(BpfBackend, TheHolderOfALockIsNamed) {
  check("report", "lock_holder", {"--for", "2"});
  const std::string lock_waits =
      "FROM waits WHERE stack_text(stack) LIKE '%pthread_mutex_lock%' AND runqueue_ns < "
      "duration_ns AND flags NOT LIKE '%open_end%'";
  int64_t waits = number("SELECT count(*) AS n " + lock_waits);
  ASSERT_GT(waits, 50);
  EXPECT_GE(number("SELECT count(owner_tid) AS n " + lock_waits), waits * 95 / 100);
  EXPECT_GE(number("SELECT count(*) AS n " + lock_waits +
                   " AND stack_text(waker_stack) LIKE '%hold_the_lock%'"),
            waits * 95 / 100);
  EXPECT_EQ(number("SELECT count(*) AS n " + lock_waits + " AND owner_tid = tid"), 0);
}

// Both at once on the same process, which also shows that two captures do not disturb one another.
TEST_F(BpfBackend, AgreesWithPerfEvents) {
  Background target({program("mutex_contend"), "--gap-us", "2000", "--for", "60", "--announce"});
  target.read_line();
  constexpr int kAttempts = 4;  // the two windows differ by however long the machine stalls
  std::string found;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::map<std::string, std::map<pid_t, double>> off_cpu;
    std::map<std::string, std::string> paths;
    std::vector<std::unique_ptr<Background>> recordings;
    for (const char* backend : {"bpf", "perf"}) {
      paths[backend] = run_file(std::string("agree-") + backend);
      recordings.push_back(std::make_unique<Background>(
          std::vector<std::string>{assay(), "record", "-q", "--backend", backend, "--for", "2s",
                                   "--pid", std::to_string(target.pid()), "-o", paths[backend]}));
    }
    for (auto& recording : recordings) ASSERT_EQ(recording->wait().exit_code, 0);
    for (const auto& [backend, run_path] : paths) {
      auto rows = sql(run_path,
                      "SELECT tid, sum(duration_ns) * 1.0 / ((SELECT value FROM info WHERE key = "
                      "'window_end_ns') - (SELECT value FROM info WHERE key = 'window_begin_ns')) "
                      "AS share FROM waits GROUP BY tid");
      for (const auto& row : rows) off_cpu[backend][row["tid"]] = row["share"];
      auto overlaps = sql(run_path,
                          "SELECT count(*) AS n FROM (SELECT start_ns, lag(start_ns + duration_ns) "
                          "OVER (PARTITION BY thread_id ORDER BY start_ns) AS before FROM waits) "
                          "WHERE start_ns < before");
      EXPECT_EQ(overlaps.at(0)["n"].get<int>(), 0) << backend << ": waits of a thread overlap";
    }
    found.clear();
    EXPECT_EQ(off_cpu["bpf"].size(), off_cpu["perf"].size());
    for (const auto& [tid, share] : off_cpu["bpf"]) {
      if (std::abs(share - off_cpu["perf"][tid]) > 0.05)
        found += std::to_string(tid) + ": off the CPU " + std::to_string(share) + " by BPF, " +
                 std::to_string(off_cpu["perf"][tid]) + " by perf events\n";
    }
    if (found.empty()) break;
  }
  EXPECT_EQ(found, "");
}

// Ids of the loaded programs that have the name of one of ours.
std::set<uint32_t> our_programs() {
  std::set<uint32_t> ids;
  union bpf_attr attr;
  for (uint32_t id = 0;;) {
    std::memset(&attr, 0, sizeof attr);
    attr.start_id = id;
    if (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr, sizeof attr) != 0) return ids;
    id = attr.next_id;
    std::memset(&attr, 0, sizeof attr);
    attr.prog_id = id;
    auto fd = static_cast<int>(syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof attr));
    if (fd < 0) continue;
    bpf_prog_info info{};
    std::memset(&attr, 0, sizeof attr);
    attr.info.bpf_fd = static_cast<uint32_t>(fd);
    attr.info.info_len = sizeof info;
    attr.info.info = reinterpret_cast<uint64_t>(&info);
    if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof attr) == 0 &&
        std::strcmp(info.name, "on_switch") == 0)
      ids.insert(id);
    close(fd);
  }
}

TEST_F(BpfBackend, KillLeavesNothingInTheKernel) {
  Background target({program("busy_share"), "--for", "60", "--announce"});
  target.read_line();
  std::set<uint32_t> before = our_programs();
  Background recording({assay(), "record", "-q", "--backend", "bpf", "--for", "60s", "--pid",
                        std::to_string(target.pid()), "-o", run_file("killed-bpf")});
  std::set<uint32_t> loaded;
  for (int i = 0; i < 100 && loaded.empty(); ++i) {
    usleep(100'000);
    for (uint32_t id : our_programs())
      if (!before.contains(id)) loaded.insert(id);
  }
  ASSERT_FALSE(loaded.empty()) << "the programs never appeared";
  usleep(500'000);
  recording.signal(SIGKILL);
  recording.wait();
  bool gone = false;
  for (int i = 0; i < 100 && !gone; ++i) {  // the kernel frees them after a grace period
    std::set<uint32_t> now = our_programs();
    gone = std::ranges::none_of(loaded, [&](uint32_t id) { return now.contains(id); });
    if (!gone) usleep(100'000);
  }
  EXPECT_TRUE(gone);
  EXPECT_EQ(kill(target.pid(), 0), 0) << "the target goes on";
}

TEST_F(BpfBackend, WhereItCannotBeUsedPerfEventsTakeOverAndTheRunSaysWhy) {
  path = run_file("fallback");
  Finished automatic = run(
      {assay(), "record", "-q", "--per-task", "-o", path, "--for", "300ms", "--", "sleep", "0.2"});
  EXPECT_EQ(automatic.exit_code, 0) << automatic.err;
  EXPECT_EQ(sql(path, "SELECT value AS v FROM info WHERE key = 'backend'").at(0)["v"],
            "perf_event");
  EXPECT_EQ(number("SELECT count(*) AS n FROM note WHERE topic = 'backend'"), 1);
  Finished asked = run({assay(), "record", "-q", "--backend", "bpf", "--per-task", "-o",
                        run_file("refused"), "--", "sleep", "0.2"});
  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_NE(asked.err, "");
}

}  // namespace
}  // namespace assay::kernel_test
