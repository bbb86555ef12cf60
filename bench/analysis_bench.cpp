// How long analysis takes: 1M samples and 3M waits of 200 threads, through a run in memory.
//
// The promise is under 2 s on one core (release build). Stacks look like a real server's: 20,000
// call paths of depth 10–60 over 3,000 functions, leaves at many addresses. Prints the CPU time of
// analyse() and of each renderer; decoding of the run file is not included.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"
#include "report/json/json.h"
#include "report/markdown.h"
#include "report/text/text.h"

namespace {

using namespace assay;

constexpr int kThreads = 200;
constexpr int kFunctions = 3'000;
constexpr int kPaths = 20'000;
constexpr int kWaitPaths = 2'000;  // a program blocks in fewer places than it runs in
constexpr int kSamples = 1'000'000;
constexpr int kWaits = 3'000'000;
constexpr int kLeavesPerPath = 12;

std::vector<std::vector<model::StackId>> make_stacks(analysis::FakeRun& run,
                                                     std::mt19937_64& random) {
  std::vector<model::FrameId> frames;
  for (int f = 0; f < kFunctions; ++f) {
    frames.push_back(run.frame((f % 10 == 0 ? "k:kernel_function_" : "ns::Class::function_") +
                               std::to_string(f)));
  }
  std::vector<std::vector<model::StackId>> paths(kPaths);
  for (auto& leaves : paths) {
    model::StackId stack{};
    for (uint64_t depth = 10 + random() % 50; depth > 0; --depth) {
      // Callers near the root are few, as in a program; the tree widens towards its leaves.
      uint64_t choice = random() % (depth > 8 ? 4 : 30);
      stack = run.push(stack, frames[(depth * 37 + choice * 11) % frames.size()]);
    }
    model::FrameId leaf = frames[random() % frames.size()];
    for (int i = 0; i < kLeavesPerPath; ++i)
      leaves.push_back(run.push(stack, run.same_function(leaf)));
  }
  return paths;
}

void fill(analysis::FakeRun& run) {
  std::mt19937_64 random(1);
  run.edit().info.window_end_ns = 60 * kNsPerSecond;
  auto process = run.add_process(1, "/opt/server");
  std::vector<model::ThreadId> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(run.add_thread(process, t, "worker-" + std::to_string(t),
                                     "worker" + std::to_string(t % 8) + "-*"));
  }
  auto paths = make_stacks(run, random);
  auto some_stack = [&](int path_count, size_t leaves) {
    // Squared, so that some paths are hot and most are not.
    auto u = static_cast<double>(random() % 1'000'000) / 1e6;
    return paths[static_cast<size_t>(u * u * path_count)][random() % leaves];
  };
  for (int i = 0; i < kSamples; ++i) {
    run.add_sample(threads[random() % kThreads], some_stack(kPaths, kLeavesPerPath), i * 60'000LL,
                   10 * kNsPerMs);
  }
  std::vector<TimeNs> at(kThreads, 0);
  for (int i = 0; i < kWaits; ++i) {
    size_t t = random() % kThreads;
    auto duration = static_cast<int64_t>(1000 + random() % 4'000'000 % (1 + random() % 4'000'000));
    auto& wait = run.add_wait(threads[t], some_stack(kWaitPaths, 2), at[t], duration);
    if (i % 7 == 0) wait.set(model::WaitFlag::preempted);
    wait.syscall = wait.stack.value % 3 ? 202 : 232;
    at[t] += duration + 2000;
  }
}

// CPU time, so that a busy machine does not change the figure.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

template <class F>
double seconds(F&& work) {
  double begin = cpu_seconds();
  work();
  return cpu_seconds() - begin;
}

}  // namespace

int main() {
  analysis::FakeRun run;
  fill(run);
  std::printf("%d samples, %d waits, %zu stacks, %zu frames\n", kSamples, kWaits,
              run.contents().stacks.size(), run.contents().frames.size());
  analysis::Report report;
  std::vector<double> rounds;
  for (int round = 0; round < 5; ++round) {
    rounds.push_back(seconds([&] { report = analysis::analyse(run, {}).value(); }));
  }
  std::sort(rounds.begin(), rounds.end());
  std::printf("analyse   median %.2f s, worst %.2f s of %zu\n", rounds[2], rounds.back(),
              rounds.size());
  size_t bytes = 0;
  double text = seconds([&] { bytes += report::render_text(report, {}).size(); });
  double json = seconds([&] { bytes += report::render_json(report).size(); });
  double markdown = seconds([&] { bytes += report::render_markdown(report).size(); });
  std::printf("text %.3f s, json %.3f s, markdown %.3f s (%zu bytes)\n", text, json, markdown,
              bytes);
}
