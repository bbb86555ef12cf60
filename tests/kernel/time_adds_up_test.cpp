// Promise 1: for each thread, on-CPU + run-queue + blocked = wall, and all of it agrees with what
// the program measured of itself.
//
// Programs are launched by `assay record -- PROGRAM`, so that the capture covers their whole life
// and both sides speak of the same time. Tolerances: 2 % of the thread's life, plus 20 ms for what
// lies between a thread's first instruction and its own first clock reading (start-up under load),
// plus, for on-CPU time from samples, four standard errors of a count of samples.
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

constexpr double kTolerance = 0.02;
constexpr double kStartUpNs = 20e6;

struct Measured {
  int64_t wall_ns = 0;
  int64_t waits_ns = 0;    // all of it off the CPU
  int64_t blocked_ns = 0;  // not preempted: what a program times around a blocking call
  int64_t preempted_ns = 0;
  int64_t samples_ns = 0;
  int64_t samples = 0;
  int64_t blocked_waits = 0;
  int64_t running_ns() const { return wall_ns - waits_ns; }
};

std::map<pid_t, Measured> measure(const std::string& path) {
  std::map<pid_t, Measured> threads;
  nlohmann::json run_report = report(path);
  for (const auto& thread : run_report["threads"])
    threads[thread["tid"]].wall_ns += thread["wall_ns"].get<int64_t>();
  for (const auto& row : sql(path,
                             "SELECT tid, flags LIKE '%preempted%' AS preempted, count(*) AS n, "
                             "sum(duration_ns) AS ns FROM waits GROUP BY 1, 2")) {
    Measured& thread = threads[row["tid"]];
    int64_t ns = row["ns"];
    thread.waits_ns += ns;
    if (row["preempted"].get<int>() != 0) {
      thread.preempted_ns += ns;
    } else {
      thread.blocked_ns += ns;
      thread.blocked_waits += row["n"].get<int64_t>();
    }
  }
  for (const auto& row :
       sql(path, "SELECT tid, count(*) AS n, sum(weight_ns) AS ns FROM samples GROUP BY 1")) {
    threads[row["tid"]].samples_ns = row["ns"];
    threads[row["tid"]].samples = row["n"];
  }
  return threads;
}

class TimeAddsUp : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string why = why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
  }

  // Records the program's whole life and keeps both accounts.
  void record(const std::string& name, std::vector<std::string> arguments) {
    path = run_file(name);  // a fresh one for every attempt
    std::vector<std::string> argv{assay(), "record", "-q", "-o", path, "--", program(name)};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Finished finished = run(argv);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    truths = parse_truths(finished.out);
    ASSERT_FALSE(truths.empty()) << finished.out;
    measured = measure(path);
  }

  // Where the two accounts of a thread differ by more than the tolerance; empty when they agree.
  // `timed_waits`: the program's own account of its waits is of time off the CPU. Where each wait
  // is microseconds long it holds the call's own CPU time as well, and life minus CPU time is
  // compared.
  std::string differences(const Truth& truth, bool timed_waits) {
    if (!measured.contains(truth.tid)) return "thread " + truth.name + " is missing from the run\n";
    const Measured& thread = measured[truth.tid];
    double slack = kTolerance * static_cast<double>(truth.wall_ns) + kStartUpNs;
    double one = thread.samples > 0
                     ? static_cast<double>(thread.samples_ns) / static_cast<double>(thread.samples)
                     : 1e7;
    double sampling = 4 * one * std::sqrt(std::max<double>(1, static_cast<double>(thread.samples)));
    int64_t off_cpu = truth.wall_ns - truth.cpu_ns;
    struct Comparison {
      const char* what;
      int64_t ours, theirs;
      double tolerance;
    };
    std::string found;
    for (const Comparison& c :
         {Comparison{"life", thread.wall_ns, truth.wall_ns, slack},
          Comparison{"on-CPU time by switches", thread.running_ns(), truth.cpu_ns, slack},
          timed_waits ? Comparison{"time waited", thread.blocked_ns, truth.wait_ns, slack}
                      : Comparison{"time off the CPU", thread.waits_ns, off_cpu, slack},
          Comparison{"on-CPU time by samples", thread.samples_ns, truth.cpu_ns,
                     slack + sampling}}) {
      if (std::abs(static_cast<double>(c.ours - c.theirs)) <= c.tolerance) continue;
      found += fmt::format(
          "{} {}: {}: {} ms in the run, {} ms by its own clock, tolerance {:.0f} ms\n", truth.name,
          truth.tid, c.what, c.ours / 1'000'000, c.theirs / 1'000'000, c.tolerance / 1e6);
    }
    return found;
  }

  // A shared machine can take a CPU away for longer than the tolerance, so a run that disagrees is
  // repeated; an error of Assay's would be there every time.
  void expect_accounts_agree(const std::string& name, const std::vector<std::string>& arguments,
                             bool timed_waits = true) {
    constexpr int kAttempts = 5;
    std::string found;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      record(name, arguments);
      if (HasFatalFailure()) return;
      found.clear();
      for (const Truth& truth : truths) found += differences(truth, timed_waits);
      if (found.empty()) return;
    }
    ADD_FAILURE() << found;
  }

  void expect_nothing_lost() {
    auto lost = sql(path, "SELECT coalesce(sum(count), 0) AS n FROM loss");
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0]["n"].get<int64_t>(), 0);
  }

  std::string path;
  std::vector<Truth> truths;
  std::map<pid_t, Measured> measured;
};

TEST_F(TimeAddsUp, BusyForAShare) {
  expect_accounts_agree("busy_share", {"--percent", "30", "--for", "2"});
  expect_nothing_lost();
}

TEST_F(TimeAddsUp, Sleeping) {
  expect_accounts_agree("sleeper", {"--for", "2"});
}

TEST_F(TimeAddsUp, ContendedMutex) {
  // lock() takes CPU time of its own before it blocks and after it is woken, which the program's
  // clock around it counts as waiting.
  expect_accounts_agree("mutex_contend", {"--threads", "4", "--hold-us", "50", "--for", "2"},
                        false);
}

TEST_F(TimeAddsUp, PipePingPong) {
  expect_accounts_agree("pipe_pingpong", {"--pin", "--for", "2"}, false);
  auto rows = sql(path, "SELECT count(*) AS n FROM waits");
  EXPECT_GT(rows.at(0)["n"].get<int64_t>(), 10000) << "every hand-off is a wait";
}

TEST_F(TimeAddsUp, MoreThreadsThanCpus) {
  expect_accounts_agree("oversubscribed", {"--threads", "8", "--for", "2"});
  int64_t preempted = 0;
  int64_t blocked = 0;
  for (const Truth& truth : truths) {
    if (truth.cpu_ns < truth.wall_ns / 100) continue;  // the main thread waits for the others
    preempted += measured[truth.tid].preempted_ns;
    blocked += measured[truth.tid].blocked_ns;
  }
  EXPECT_GT(preempted, 20 * blocked) << "waiting for a CPU is not blocking";
}

TEST_F(TimeAddsUp, ThreadsBlockedThroughout) {
  expect_accounts_agree("blocked_forever", {"--for", "2"});
}

TEST_F(TimeAddsUp, ForkedChildren) {
  expect_accounts_agree("fork_tree", {"--for", "2"});
}

TEST_F(TimeAddsUp, AcrossExec) {
  record("exec_chain", {"--for", "2"});
  auto images = sql(path, "SELECT count(*) AS n FROM process");
  EXPECT_GE(images.at(0)["n"].get<int>(), 2) << "exec makes a new process of the run";
  expect_nothing_lost();
}

TEST_F(TimeAddsUp, ThreadsThatComeAndGo) {
  record("thread_churn", {"--per-second", "1000", "--for", "2"});
  int64_t threads = sql(path, "SELECT count(*) AS n FROM thread").at(0)["n"];
  EXPECT_GT(threads, 200) << "short threads are in the run";
  for (const auto& thread : report(path)["threads"]) {
    int64_t sum = thread["user_ns"].get<int64_t>() + thread["kernel_ns"].get<int64_t>() +
                  thread["runqueue_ns"].get<int64_t>() + thread["idle_ns"].get<int64_t>();
    for (const auto& [kind, ns] : thread["blocked_ns"].items()) sum += ns.get<int64_t>();
    ASSERT_EQ(sum, thread["wall_ns"].get<int64_t>()) << thread.dump();
  }
}

}  // namespace
}  // namespace assay::kernel_test
