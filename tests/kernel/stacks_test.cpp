// Stacks and names in difficult cases: signal stacks, coroutines, libraries that are loaded and
// unloaded, files that are deleted or differ from the host's, code without a file.
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

namespace fs = std::filesystem;

// A shared machine may lose a moment's records; what is missing from one capture is there in the
// next.
constexpr int kAttempts = 3;

class Stacks : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string why = why_skipped();
    if (!why.empty()) GTEST_SKIP() << why;
    path_ = run_file("stacks");
  }

  void record(const std::vector<std::string>& command, const std::string& backend = "") {
    std::vector<std::string> argv{assay(), "record", "-q", "--overwrite", "--freq", "499"};
    if (!backend.empty()) argv.insert(argv.end(), {"--backend", backend});
    argv.insert(argv.end(), {"-o", path_, "--"});
    argv.insert(argv.end(), command.begin(), command.end());
    Finished finished = run(argv);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
  }

  void require_bpf() {
    Finished tried = run({assay(), "record", "-q", "--overwrite", "--backend", "bpf", "-o", path_,
                          "--for", "100ms", "--", "true"});
    if (tried.exit_code != 0) GTEST_SKIP() << "skipped: no BPF backend here: " << tried.err;
  }

  void record_pid(pid_t pid) {
    Finished finished = run({assay(), "record", "-q", "--overwrite", "--freq", "499", "-o", path_,
                             "--for", "1s", "--pid", std::to_string(pid)});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
  }

  // Share of on-CPU time whose stack has these functions, leaf first, with any others between.
  double share_through(const std::vector<std::string>& functions) {
    double total = 0;
    double through = 0;
    nlohmann::json whole = report(path_);
    for (const auto& path : whole["hot_paths"]) {
      auto time = path["time_ns"].get<double>();
      size_t next = 0;
      for (const auto& frame : path["frames"]) {
        if (next < functions.size() &&
            frame["function"].get<std::string>().find(functions[next]) != std::string::npos)
          ++next;
      }
      total += time;
      if (next == functions.size()) through += time;
    }
    return total > 0 ? through / total : 0;
  }

  double complete_share() {
    return report(path_)["quality"]["on_cpu_stacks"]["complete_share"].get<double>();
  }

  // 90 % of the time of the paths that the report shows (the rest is start-up and exit), and 99.5 %
  // of all of it complete.
  void expect_stacks(const std::vector<std::string>& functions,
                     const std::function<void()>& record_again) {
    for (int attempt = 1;; ++attempt) {
      record_again();
      if (HasFatalFailure()) return;
      double through = share_through(functions);
      double complete = complete_share();
      if (through > 0.9 && complete >= 0.995) return;
      if (attempt < kAttempts) continue;
      EXPECT_GT(through, 0.9) << report(path_)["hot_paths"].dump(1).substr(0, 4000);
      EXPECT_GE(complete, 0.995);
      return;
    }
  }

  std::string path_;
};

// perf copies one stack, the handler's; the interrupted frames are on the other one.
TEST_F(Stacks, AHandlerOnASignalStackEndsWhereItsCopyDoesAndSaysSo) {
  record({program("odd_stacks"), "--signal", "--for", "1"}, "perf");
  EXPECT_GT(share_through({"busy_at_the_end", "on_signal", "interrupted stack not copied"}), 0.9);
}

TEST_F(Stacks, AHandlerOnASignalStackIsCalledFromWhatItInterrupted) {
  require_bpf();
  if (IsSkipped()) return;
  // In the first moments, before the kernel has the program's tables, one stack is copied as above.
  record({program("odd_stacks"), "--signal", "--for", "1"}, "bpf");
  EXPECT_GT(share_through({"busy_at_the_end", "on_signal", "interrupted_work", "main"}), 0.8);
  EXPECT_GT(complete_share(), 0.8);
}

// The stack of the sleep was recorded when it began: the walk of the handler's stack continues in
// it.
TEST_F(Stacks, AHandlerThatInterruptsAWaitIsCalledFromIt) {
  for (const std::string backend : {"perf", "bpf"}) {
    SCOPED_TRACE(backend);
    if (backend == "bpf") require_bpf();
    if (IsSkipped()) return;
    double through = 0, complete = 0;
    for (int attempt = 0; attempt < kAttempts && (through < 0.9 || complete < 0.9); ++attempt) {
      record({program("odd_stacks"), "--alarm", "--for", "2"}, backend);
      ASSERT_FALSE(HasFatalFailure());
      through = share_through({"busy_at_the_end", "on_signal", "interrupted_sleep", "main"});
      complete = complete_share();
    }
    EXPECT_GT(through, 0.9) << report(path_)["hot_paths"].dump(1).substr(0, 4000);
    EXPECT_GT(complete, 0.9);
  }
}

TEST_F(Stacks, ACoroutineEndsWhereItsStackBegins) {
  expect_stacks({"busy_at_the_end", "coroutine_step", "coroutine_body"}, [&] {
    record({program("odd_stacks"), "--context", "--for", "1"});
  });
}

TEST_F(Stacks, ALibraryThatComesAndGoes) {
  std::string library = program("libpart.so");
  expect_stacks({"busy_at_the_end", "part_inner_of_the_first", "part_work", "main"}, [&] {
    record({"env", "PART_LIBRARY=" + library, program("odd_stacks"), "--library", "--for", "1"});
  });
}

TEST_F(Stacks, ADeletedProgramStillHasItsNames) {
  std::string copy = run_file("deleted") + ".program";
  expect_stacks({"busy_at_the_end", "coroutine_step"}, [&] {
    fs::copy_file(program("odd_stacks"), copy, fs::copy_options::overwrite_existing);
    Background target({copy, "--context", "--for", "20", "--announce"});
    target.read_line();
    fs::remove(copy);
    record_pid(target.pid());
  });
}

// The library's path leads to one file on the host and to another in the target's mount namespace.
TEST_F(Stacks, AMountNamespaceWithALibraryOfItsOwn) {
  if (run({"unshare", "--mount", "true"}).exit_code != 0)
    GTEST_SKIP() << "skipped: a mount namespace cannot be made here";
  std::string shared = run_file("namespace") + ".libpart.so";
  fs::copy_file(program("libpart.so"), shared, fs::copy_options::overwrite_existing);
  std::string script = "mount --bind '" + program("libpart_other.so") + "' '" + shared +
                       "' && exec env PART_LIBRARY='" + shared + "' '" + program("odd_stacks") +
                       "' --library --for 20 --announce";
  expect_stacks({"busy_at_the_end", "part_inner_of_the_other", "part_work"}, [&] {
    Background target({"unshare", "--mount", "sh", "-c", script});
    target.read_line();
    record_pid(target.pid());
  });
  fs::remove(shared);
}

// Another C library altogether, statically linked against nothing of the host.
TEST_F(Stacks, AMuslProgram) {
  if (run({"sh", "-c", "command -v musl-gcc"}).exit_code != 0)
    GTEST_SKIP() << "skipped: musl-gcc is missing (musl-tools)";
  std::string program_path = run_file("musl") + ".program";
  std::string source = program_path + ".c";
  std::ofstream(source) << "#include <time.h>\n"
                           "__attribute__((noinline)) void musl_work(void) {\n"
                           "  volatile long x = 0; for (int i = 0; i < 1000000; ++i) x += i;\n"
                           "  __asm__ volatile(\"\" ::: \"memory\");\n}\n"
                           "int main(void) { time_t end = time(0) + 2;\n"
                           "  while (time(0) < end) musl_work(); return 0; }\n";
  for (const char* linked : {"-static", "-dynamic"}) {
    SCOPED_TRACE(linked);
    Finished built =
        run({"musl-gcc", "-O2", "-g", "-fomit-frame-pointer", linked, "-o", program_path, source});
    ASSERT_EQ(built.exit_code, 0) << built.err;
    expect_stacks({"musl_work", "main"}, [&] { record({program_path}); });
  }
}

TEST_F(Stacks, NodeNamesWhatItCompiled) {
  if (run({"sh", "-c", "command -v node"}).exit_code != 0)
    GTEST_SKIP() << "skipped: node is missing";
  std::string script = run_file("node") + ".js";
  std::ofstream(script) << "function hotScript(n) { let x = 0; for (let i = 0; i < n; i++) x += "
                           "Math.sqrt(i); return x; }\n"
                           "const end = Date.now() + 3000; let y = 0;\n"
                           "function outerScript() { while (Date.now() < end) y += hotScript(1e5); "
                           "}\nouterScript(); if (y < 0) console.log(y);\n";
  fs::current_path(fs::path(script).parent_path());
  expect_stacks({"outerScript", "node::"}, [&] {
    record({"node", "--perf-basic-prof", "--interpreted-frames-native-stack", script});
  });
}

TEST_F(Stacks, PythonNamesItsFunctions) {
  // -X perf came with 3.12.
  std::string python;
  for (const std::string name : {"python3", "python3.13", "python3.12"}) {
    if (run({"sh", "-c", "command -v " + name}).exit_code != 0) continue;
    if (run({name, "-X", "perf", "-c", "import sys; sys.exit(sys.version_info < (3, 12))"})
            .exit_code == 0)
      python = name;
  }
  if (python.empty()) GTEST_SKIP() << "skipped: python 3.12 or newer is missing";
  std::string script = run_file("python") + ".py";
  std::ofstream(script)
      << "import time\n"
         "def hot_python(n):\n  x = 0\n  for i in range(n): x += i * i\n  return x\n"
         "def outer_python():\n"
         "  end = time.time() + 2\n  while time.time() < end: hot_python(10000)\n"
         "outer_python()\n";
  // Its trampolines have neither unwind information nor frame pointers: beyond the first of them
  // only an interpreter built with frame pointers can be followed.
  record({python, "-X", "perf", script});
  EXPECT_GT(share_through({"hot_python"}), 0.8);
}

TEST_F(Stacks, LocksAndSourceLinesHaveTheirText) {
  record({program("mutex_contend"), "--threads", "3", "--for", "1"});
  auto locks = sql(path_, "SELECT name FROM data_name");
  ASSERT_FALSE(locks.empty());
  EXPECT_NE(locks.at(0)["name"].get<std::string>().find("g_contended"), std::string::npos);
  auto lines = sql(path_,
                   "SELECT count(*) AS n FROM source_line WHERE file LIKE '%mutex_contend.cpp' AND "
                   "text LIKE '%burn_cpu_ns%'");
  EXPECT_GT(lines.at(0)["n"].get<int>(), 0);

  Finished without = run({assay(), "record", "-q", "--overwrite", "--no-source", "-o", path_, "--",
                          program("mutex_contend"), "--threads", "3", "--for", "1"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(sql(path_, "SELECT count(*) AS n FROM source_line").at(0)["n"].get<int>(), 0);
}

}  // namespace
}  // namespace assay::kernel_test
