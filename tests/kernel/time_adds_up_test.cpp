// Promise 1: for each thread, on-CPU + run-queue + blocked = wall, and all of it agrees with what
// the program measured of itself.
//
// Programs are launched by `assay record -- PROGRAM`, so that the capture covers their whole life
// and both sides describe the same time. Tolerances: 2 % of the thread's life, plus 20 ms for what
// lies between a thread's first instruction and its own first clock reading (start-up under load),
// plus, for on-CPU time from samples, four standard errors of a count of samples, plus what the
// hypervisor took meanwhile. Run-queue time is
// compared with the kernel's own count: 5 % of it, plus 1 % of the thread's life, because single
// preemptions of the program's start and end lie outside its own account.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

constexpr double kTolerance = 0.02;
constexpr double kStartUpNs = 20e6;
// A shared machine can take a CPU away for longer than the tolerance, so a run that disagrees is
// repeated; an error of Assay would appear every time.
constexpr int kAttempts = 5;

struct Measured {
  int64_t wall_ns = 0;
  int64_t waits_ns = 0;    // all of it off the CPU
  int64_t blocked_ns = 0;  // not preempted: what a program times around a blocking call
  int64_t preempted_ns = 0;
  int64_t queued_ns = 0;  // on a run queue, after a wake-up as well
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
                             "sum(duration_ns) AS ns, sum(runqueue_ns) AS queued FROM waits GROUP BY 1, 2")) {
    Measured& thread = threads[row["tid"]];
    int64_t ns = row["ns"];
    thread.waits_ns += ns;
    thread.queued_ns += row["queued"].get<int64_t>();
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

// Time that the hypervisor gave to others, of all CPUs (the eighth number of /proc/stat, in ticks).
double stolen_ns() {
  std::ifstream stat("/proc/stat");
  std::string word;
  double ticks = 0;
  stat >> word;
  for (int i = 0; i < 8; ++i) stat >> ticks;
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)) * 1e9;
}

// A disturbance lasts for seconds: the next attempts come later and later (1, 2, 4, 8 s).
void sleep_before(int attempt) {
  if (attempt > 0) ::sleep(1u << (attempt - 1));
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
    double stolen_before = stolen_ns();
    Finished finished = run(argv);
    stolen = stolen_ns() - stolen_before;
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    out = finished.out;
    truths = parse_truths(out);
    ASSERT_FALSE(truths.empty()) << out;
    measured = measure(path);
  }

  // Where the two accounts of a thread differ by more than the tolerance; empty when they agree.
  // `timed_waits`: the program's own account of its waits is of time off the CPU. Where each wait
  // is microseconds long it holds the call's own CPU time as well, and life minus CPU time is
  // compared.
  std::string differences(const Truth& truth, bool timed_waits) {
    if (!measured.contains(truth.tid)) return "thread " + truth.name + " is missing from the run\n";
    const Measured& thread = measured[truth.tid];
    // What the hypervisor takes lies between two switches, and is not in the thread's own clock.
    double slack = kTolerance * static_cast<double>(truth.wall_ns) + kStartUpNs + stolen;
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
          "{} {}: {}: {} ms in the run, {} ms by its own clock, tolerance {:.0f} ms ({:.0f} ms were "
          "stolen from all CPUs)\n",
          truth.name, truth.tid, c.what, c.ours / 1'000'000, c.theirs / 1'000'000,
          c.tolerance / 1e6, stolen / 1e6);
    }
    return found;
  }

  void expect_accounts_agree(const std::string& name, const std::vector<std::string>& arguments,
                             bool timed_waits = true) {
    std::string found;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      sleep_before(attempt);
      record(name, arguments);
      if (HasFatalFailure()) return;
      found.clear();
      for (const Truth& truth : truths) found += differences(truth, timed_waits);
      if (found.empty()) return;
    }
    ADD_FAILURE() << found;
  }

  // Run-queue time against the kernel's own count, and running time with it.
  void expect_queues_agree(const std::string& name, const std::vector<std::string>& arguments) {
    std::string found;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      sleep_before(attempt);
      record(name, arguments);
      if (HasFatalFailure()) return;
      found.clear();
      for (const Truth& truth : truths) {
        if (!measured.contains(truth.tid)) continue;  // the other tests look for missing ones
        const Measured& thread = measured[truth.tid];
        auto life = static_cast<double>(truth.wall_ns);
        found += difference(truth.name + ": run queue", thread.queued_ns, truth.queued_ns,
                            0.05 * static_cast<double>(truth.queued_ns) + 0.01 * life + stolen);
        found += difference(truth.name + ": running", thread.running_ns(), truth.cpu_ns,
                            kTolerance * life + stolen);
      }
      if (found.empty()) return;
    }
    ADD_FAILURE() << found;
  }

  void expect_nothing_lost() {
    auto lost = sql(path, "SELECT coalesce(sum(count), 0) AS n FROM loss");
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0]["n"].get<int64_t>(), 0);
  }

  // All parts of a thread's time in the report.
  static int64_t parts_of(const nlohmann::json& thread) {
    int64_t sum = thread["user_ns"].get<int64_t>() + thread["kernel_ns"].get<int64_t>() +
                  thread["runqueue_ns"].get<int64_t>() + thread["idle_ns"].get<int64_t>();
    for (const auto& [kind, ns] : thread["blocked_ns"].items()) sum += ns.get<int64_t>();
    return sum;
  }

  // As differences(), of threads that share a tid and differ by name: one for each image of an
  // exec.
  std::string differences_by_name() {
    std::map<std::string, nlohmann::json> threads;
    nlohmann::json whole = report(path);
    for (const auto& thread : whole["threads"]) threads[thread["name"]] = thread;
    std::string found;
    for (const Truth& truth : truths) {
      if (!threads.contains(truth.name)) {
        found += truth.name + " is missing from the run\n";
        continue;
      }
      const nlohmann::json& thread = threads[truth.name];
      EXPECT_EQ(parts_of(thread), thread["wall_ns"].get<int64_t>()) << thread.dump();
      int64_t running = thread["user_ns"].get<int64_t>() + thread["kernel_ns"].get<int64_t>();
      double slack = kTolerance * static_cast<double>(truth.wall_ns) + kStartUpNs;
      found += difference(truth.name + ": life", thread["wall_ns"], truth.wall_ns, slack);
      found += difference(truth.name + ": on-CPU time", running, truth.cpu_ns, slack);
    }
    return found;
  }

  static std::string difference(const std::string& what, int64_t ours, int64_t theirs,
                                double tolerance) {
    if (std::abs(static_cast<double>(ours - theirs)) <= tolerance) return "";
    return fmt::format("{}: {} ms in the run, {} ms by its own clock, tolerance {:.0f} ms\n", what,
                       ours / 1'000'000, theirs / 1'000'000, tolerance / 1e6);
  }

  // What the program printed of itself as a whole.
  nlohmann::json process_line() const {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.contains("threads")) return json;
    }
    ADD_FAILURE() << "no line of the process in " << out;
    return {{"threads", 0}, {"cpu_ns", 0}};
  }

  // A thread lives in the run from before its first instruction until after its last.
  void expect_whole_lives() {
    std::map<pid_t, std::pair<int64_t, int64_t>> lives;
    for (const auto& row : sql(path, "SELECT tid, begin_ns, end_ns FROM thread"))
      lives[row["tid"]] = {row["begin_ns"], row["end_ns"]};
    int cut = 0;
    for (const Truth& truth : truths) {
      auto life = lives.find(truth.tid);
      if (life == lives.end()) continue;  // counted by census()
      cut += life->second.first > truth.begin_ns ||
             life->second.second < truth.begin_ns + truth.wall_ns;
    }
    EXPECT_EQ(cut, 0) << "threads whose life in the run is shorter than they say";
  }

  // CPU time of all threads together, births and deaths included, which no thread can time itself.
  // A thread's life in the run ends at the kernel's exit record; the work after that (freeing its
  // resources) counts for the process but for no thread: some 20 µs, 40 at most.
  std::string difference_of_process_time(int64_t cpu_ns) {
    constexpr double kAfterExitNs = 40'000;
    int64_t running = 0;
    for (const auto& [tid, thread] : measured) running += thread.running_ns();
    return difference("CPU time of all threads", running, cpu_ns,
                      kTolerance * static_cast<double>(cpu_ns) + kStartUpNs +
                          kAfterExitNs * static_cast<double>(measured.size()));
  }

  // Each short thread sleeps once, or is kept from the CPU on its way there until the time has
  // come. Its clock around the call counts the call itself as well: 50 µs are far more than that
  // takes.
  std::string difference_of_sleeps() {
    constexpr double kCallNs = 50'000;
    int64_t ours = 0, theirs = 0, sleepers = 0, seen = 0;
    for (const Truth& truth : truths) {
      if (truth.name != "short-lived" || !measured.contains(truth.tid)) continue;
      const Measured& thread = measured[truth.tid];
      ours += thread.blocked_ns;
      theirs += truth.wait_ns;
      ++sleepers;
      seen += thread.blocked_waits > 0 || 2 * thread.preempted_ns > truth.wait_ns;
    }
    std::string found = difference("sleeps of short threads", ours, theirs,
                                   kTolerance * static_cast<double>(theirs) + kStartUpNs +
                                       kCallNs * static_cast<double>(sleepers));
    if (seen != sleepers) found += fmt::format("{} of {} sleeps are in the run\n", seen, sleepers);
    return found;
  }

  std::string path;
  double stolen = 0;  // ns
  std::string out;  // of the program
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

// Threads that wake one another on a calm machine: nearly all of the time between a wake-up and
// running is the wake-up's own, and the kernel counts hardly any of it as run-queue time.
TEST_F(TimeAddsUp, RunQueueTimeIsTheKernelsOnACalmMachine) {
  expect_queues_agree("pipe_pingpong", {"--for", "2"});
}

TEST_F(TimeAddsUp, RunQueueTimeIsTheKernelsOnAFullMachine) {
  expect_queues_agree("oversubscribed", {"--threads", "8", "--for", "2"});
}

TEST_F(TimeAddsUp, ThreadsBlockedThroughout) {
  expect_accounts_agree("blocked_forever", {"--for", "2"});
}

TEST_F(TimeAddsUp, ForkedChildren) {
  expect_accounts_agree("fork_tree", {"--for", "2"});
}

// Each image is a process of the run, with a thread of its own that has the time of that image.
TEST_F(TimeAddsUp, AcrossExec) {
  constexpr size_t kLinks = 4;
  std::string found;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    record("exec_chain", {"--links", std::to_string(kLinks), "--for", "2"});
    ASSERT_FALSE(HasFatalFailure());
    expect_nothing_lost();
    EXPECT_EQ(truths.size(), kLinks) << "each image tells of itself";
    auto images = sql(path,
                      "SELECT t.name, t.begin_ns, t.end_ns FROM thread t "
                      "JOIN process p ON p.id = t.process ORDER BY t.begin_ns");
    ASSERT_EQ(images.size(), kLinks)
        << "exec makes a new process of the run, and nothing else does";
    for (size_t i = 0; i < kLinks; ++i) {
      EXPECT_EQ(images[i]["name"], fmt::format("link-{}", i + 1));
      if (i == 0) continue;
      EXPECT_EQ(images[i]["begin_ns"], images[i - 1]["end_ns"]) << "no time between two images";
    }
    found = differences_by_name();
    if (found.empty()) return;
  }
  ADD_FAILURE() << found;
}

// Every thread that was made is in the run with its whole life; their CPU time is the process's.
TEST_F(TimeAddsUp, ThreadsThatComeAndGo) {
  std::string found;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    record("thread_churn", {"--per-second", "1000", "--for", "2"});
    ASSERT_FALSE(HasFatalFailure());
    for (const auto& thread : report(path)["threads"]) {
      ASSERT_EQ(parts_of(thread), thread["wall_ns"].get<int64_t>()) << thread.dump();
    }
    Census seen = census(path, truths);
    ASSERT_GT(seen.told, 200u);
    EXPECT_TRUE(seen.is_honest()) << seen.missing << " of " << seen.told << " are missing, "
                                  << seen.lost << " records lost";
    auto made = process_line();
    int64_t threads = sql(path, "SELECT count(*) AS n FROM thread").at(0)["n"];
    EXPECT_EQ(threads + seen.untracked, made["threads"].get<int64_t>());
    expect_whole_lives();
    found = difference_of_process_time(made["cpu_ns"]) + difference_of_sleeps();
    if (found.empty()) return;
  }
  ADD_FAILURE() << found;
}

}  // namespace
}  // namespace assay::kernel_test
