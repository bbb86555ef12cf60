// What a wait costs in the run file: add_wait, flush, bytes. Not part of ctest; build it by hand:
//   cmake --build --preset release --target run_codec_bench && build/release/bench/run_codec_bench
//
// The traffic is a server's: 64 threads in 4 processes, 120 distinct stacks, futex and epoll waits
// of exponential length (mean 100 µs), runs of mean 10 µs, run-queue delays of mean 4 µs, 10 %
// preempted.
#include <filesystem>
#include <random>

#include <benchmark/benchmark.h>
#include <sys/stat.h>

#include "run/blocks/block_codec.h"
#include "run/writer.h"

namespace assay::run {
namespace {

constexpr uint32_t kThreads = 64;
constexpr uint32_t kStacks = 120;

std::vector<model::Wait> server_waits(size_t count, TimeNs begin, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> wait_ns(1 / 100'000.0), run_ns(1 / 10'000.0),
      runqueue_ns(1 / 4'000.0);
  std::vector<TimeNs> now(kThreads, begin);
  std::vector<model::Wait> waits;
  waits.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t thread = static_cast<uint32_t>(random() % kThreads);
    model::Wait wait;
    now[thread] += static_cast<TimeNs>(run_ns(random));
    wait.start = now[thread];
    wait.thread = {thread};
    bool preempted = random() % 10 == 0;
    wait.runqueue_ns = static_cast<int64_t>(runqueue_ns(random));
    wait.duration_ns = wait.runqueue_ns + (preempted ? 0 : static_cast<int64_t>(wait_ns(random)));
    now[thread] += wait.duration_ns;
    // A few stacks take most of the waits, as on any server.
    uint32_t stack = std::min(static_cast<uint32_t>(random() % kStacks),
                              static_cast<uint32_t>(random() % kStacks));
    wait.stack = {1 + stack};
    wait.flags = static_cast<uint16_t>(preempted ? model::WaitFlag::preempted
                                                 : model::WaitFlag::runqueue_known);
    if (!preempted) {
      wait.syscall = stack % 3 == 0 ? 202 : 232;
      wait.fd_kind = stack % 3 == 0 ? model::FdKind::none : model::FdKind::epoll;
      wait.arg = stack % 3 == 0 ? 0x7f1200001000 + random() % 16 * 64 : 4 + thread % 8;
      wait.waker = {static_cast<uint32_t>(random() % kThreads)};
    }
    waits.push_back(wait);
  }
  return waits;
}

void add_tables(Writer& writer) {
  for (uint32_t i = 0; i < 4; ++i) {
    model::Process process;
    process.id = {i};
    writer.put_process(process);
  }
  for (uint32_t i = 0; i < kThreads; ++i) {
    model::Thread thread;
    thread.id = {i};
    thread.process = {i / (kThreads / 4)};
    writer.put_thread(thread);
  }
  writer.add_module({{0}, model::ModuleKind::elf, "server", ""});
  writer.add_frame({0}, {{0}, 1});
  for (uint32_t i = 1; i <= kStacks; ++i) writer.add_stack({i}, {{i - 1}, {0}});
}

// One iteration: a second of `range(0)` waits, added one by one, then flushed to a file.
void add_and_flush(benchmark::State& state) {
  std::string path = std::filesystem::temp_directory_path() / "assay-bench.assay";
  auto writer = Writer::create(path, {}, true);
  if (!writer) return state.SkipWithError(writer.error().what.c_str());
  add_tables(**writer);
  size_t count = static_cast<size_t>(state.range(0));
  auto waits = server_waits(count, 1'000 * kNsPerSecond, 1);
  int64_t total = 0;
  for (auto _ : state) {
    for (const model::Wait& wait : waits) (*writer)->add_wait(wait);
    if (auto done = (*writer)->flush(1); !done) state.SkipWithError(done.error().what.c_str());
    total += static_cast<int64_t>(count);
  }
  if (auto done = (*writer)->finish({}); !done) state.SkipWithError(done.error().what.c_str());
  state.SetItemsProcessed(total);
  state.counters["bytes/wait"] =
      static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(total);
  std::filesystem::remove(path);
}
BENCHMARK(add_and_flush)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void add_only(benchmark::State& state) {
  std::string path = std::filesystem::temp_directory_path() / "assay-bench.assay";
  auto writer = Writer::create(path, {}, true);
  if (!writer) return state.SkipWithError(writer.error().what.c_str());
  add_tables(**writer);
  auto waits = server_waits(100'000, 0, 1);
  for (auto _ : state) {
    for (const model::Wait& wait : waits) (*writer)->add_wait(wait);
    state.PauseTiming();
    if (auto done = (*writer)->flush(1); !done) state.SkipWithError(done.error().what.c_str());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * 100'000);
  std::filesystem::remove(path);
}
BENCHMARK(add_only)->Unit(benchmark::kMillisecond);

void decode_waits(benchmark::State& state) {
  auto waits = server_waits(100'000, 0, 1);
  std::stable_sort(waits.begin(), waits.end(),
                   [](const auto& a, const auto& b) { return a.thread < b.thread; });
  BlockEncoder encoder;
  BlockDecoder decoder;
  auto blob = encoder.encode(std::span<const model::Wait>(waits));
  std::vector<model::Wait> rows;
  for (auto _ : state) {
    if (!decoder.decode(*blob, rows)) return state.SkipWithError("does not decode");
    benchmark::DoNotOptimize(rows.data());
  }
  state.SetItemsProcessed(state.iterations() * 100'000);
  state.counters["bytes/wait"] = static_cast<double>(blob->size()) / 100'000;
}
BENCHMARK(decode_waits)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::run

BENCHMARK_MAIN();
