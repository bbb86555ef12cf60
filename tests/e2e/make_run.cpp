// make_run: writes run files that the page must be able to show: large, hostile, empty, tiny,
// imported.
//
//   make_run big FILE NODES [WAITS]   that many distinct call paths, and waits on top
//   make_run large FILE MEGABYTES     samples and waits until the file has about that size
//   make_run hostile FILE             names that try to break out of the page
//   make_run heap FILE                allocations and nothing else, as assay heap makes it
//   make_run empty|tiny|imported FILE
//
// Deterministic: the same arguments give the same run.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "run/writer.h"

namespace {

using namespace assay;

constexpr int64_t kSecond = 1'000'000'000;

class RunMaker {
 public:
  RunMaker(const std::string& path, int64_t window_ns, const std::string& backend)
      : info_{"0.1.0",    backend, "--name server", "assay record --name server", "cpu-clock",
              10'000'000, 0,       window_ns,       1'780'000'000'000'000'000,    "",
              false} {
    auto made = run::Writer::create(path, info_, true);
    if (!made) fail(made.error().text());
    writer_ = std::move(*made);
    for (const char* module : {"/opt/server", "/usr/lib/libwork.so.1", "[kernel]"}) {
      model::ModuleKind kind =
          module[0] == '[' ? model::ModuleKind::kernel : model::ModuleKind::elf;
      writer_->add_module({{modules_++}, kind, module, ""});
    }
    writer_->add_fact({"host", "cpus_online", "4"});
  }

  model::ThreadId thread(const std::string& name, const std::string& pool) {
    if (threads_ == 0) {
      model::Process process;
      process.pid = 100;
      process.exe = "/opt/server";
      process.comm = "server";
      process.role = "main";
      writer_->put_process(process);
    }
    model::Thread thread{
        {threads_}, {0}, static_cast<pid_t>(101 + threads_), name, pool, 0, model::kStillRunning};
    writer_->put_thread(thread);
    ++threads_;
    return thread.id;
  }

  model::FrameId frame(const std::string& name, uint32_t module = 0) {
    model::FrameId id{frames_++};
    writer_->add_frame(id, {{module}, 0x1000 + 16ull * id.value});
    model::Location location;
    location.function = name;
    if (module == 0) {
      location.file = "/src/server.cpp";
      location.line = 10 + id.value % 500;
      location.function_line = 10;
    }
    writer_->put_locations(id, std::span(&location, 1));
    return id;
  }

  model::StackId push(model::StackId parent, model::FrameId leaf) {
    model::StackId id{++stacks_};
    writer_->add_stack(id, {parent, leaf});
    return id;
  }

  void sample(model::ThreadId thread, model::StackId stack, int64_t time, int64_t weight) {
    writer_->add_sample({time, thread, stack, weight, 0});
    flush_sometimes(time);
  }

  void wait(model::ThreadId thread, model::StackId stack, int64_t start, int64_t duration) {
    model::Wait wait;
    wait.thread = thread;
    wait.stack = stack;
    wait.start = start;
    wait.duration_ns = duration;
    wait.syscall = 202;
    wait.arg = 0x7f0000001000 + 64 * (stack.value % 5);
    writer_->add_wait(wait);
    flush_sometimes(start);
  }

  // Freed after `life_ns`; 0: never.
  void allocation(model::ThreadId thread, model::StackId stack, int64_t time, uint64_t bytes,
                  int64_t life_ns) {
    uint64_t id = allocations_++;
    writer_->add_heap_alloc({time, thread, stack, id, bytes, 512 << 10, {}});
    if (life_ns > 0) writer_->add_heap_free({time + life_ns, thread, id});
    flush_sometimes(time);
  }

  void finish(int64_t window_ns = 0) {
    if (window_ns > 0) info_.window_end_ns = window_ns;
    info_.finished = true;
    info_.end_reason = "time";
    if (auto done = writer_->finish(info_); !done) fail(done.error().text());
  }

  [[noreturn]] static void fail(const std::string& text) {
    fprintf(stderr, "make_run: %s\n", text.c_str());
    exit(1);
  }

 private:
  void flush_sometimes(int64_t time) {
    if (++pending_ % 100'000 != 0) return;
    if (auto done = writer_->flush(time); !done) fail(done.error().text());
  }

  model::RunInfo info_;
  std::unique_ptr<run::Writer> writer_;
  uint32_t modules_ = 0, threads_ = 0, frames_ = 0, stacks_ = 0;
  uint64_t pending_ = 0, allocations_ = 0;
};

// A random tree: each new path extends one of the last few thousand, so depth grows to about 40.
void make_big(const std::string& path, uint32_t nodes, uint32_t waits) {
  constexpr uint32_t kFunctions = 20'000, kDeepest = 42;
  RunMaker run(path, 30 * kSecond, "perf_event");
  std::vector<model::ThreadId> threads;
  for (int i = 0; i < 16; ++i)
    threads.push_back(run.thread("worker-" + std::to_string(i), "worker-*"));
  std::vector<model::FrameId> frames;
  for (uint32_t i = 0; i < kFunctions; ++i) {
    frames.push_back(run.frame(
        "server::module_" + std::to_string(i % 97) + "::function_" + std::to_string(i), i % 2));
  }
  std::mt19937_64 random(7);
  std::vector<std::pair<model::StackId, uint32_t>> made{{model::StackId{}, 0}};
  for (uint32_t i = 0; i < nodes; ++i) {
    size_t window = std::min<size_t>(made.size(), 4000);
    auto parent = made[made.size() - 1 - random() % window];
    if (parent.second >= kDeepest) parent = made[random() % std::min<size_t>(made.size(), 100)];
    model::StackId stack = run.push(parent.first, frames[(i * 7919ull) % kFunctions]);
    made.emplace_back(stack, parent.second + 1);
    int64_t time = static_cast<int64_t>(30.0 * kSecond * i / nodes);
    run.sample(threads[i % threads.size()], stack, time,
               static_cast<int64_t>(100'000 + random() % 1'000'000));
  }
  for (uint32_t i = 0; i < waits; ++i) {
    int64_t slot = 30 * kSecond * static_cast<int64_t>(threads.size()) / std::max(1u, waits);
    int64_t start = static_cast<int64_t>(i / threads.size()) * slot;
    run.wait(threads[i % threads.size()],
             made[1 + random() % std::min<size_t>(made.size() - 1, 5000)].first, start, slot / 2);
  }
  run.finish();
}

// A server of 64 threads that each run and wait in turn, a row every 5 µs: call paths of which few
// are hot, lengths that no pattern compresses.
void make_large(const std::string& path, uint64_t megabytes) {
  constexpr uint32_t kFunctions = 5'000, kNodes = 100'000;
  constexpr int64_t kRowNs = 5'000;
  RunMaker run(path, kSecond, "perf_event");
  std::vector<model::ThreadId> threads;
  for (int i = 0; i < 64; ++i)
    threads.push_back(run.thread("worker-" + std::to_string(i), "worker-*"));
  std::vector<model::FrameId> frames;
  for (uint32_t i = 0; i < kFunctions; ++i)
    frames.push_back(run.frame("server::function_" + std::to_string(i), i % 2));
  std::mt19937_64 random(7);
  std::vector<std::pair<model::StackId, uint32_t>> made{{model::StackId{}, 0}};
  while (made.size() <= kNodes) {
    auto parent = made[random() % made.size()];
    if (parent.second >= 42) continue;
    made.emplace_back(run.push(parent.first, frames[random() % kFunctions]), parent.second + 1);
  }
  auto any_stack = [&] {
    uint64_t most = random() % 4 == 0 ? kNodes : 500;
    return made[1 + random() % most].first;
  };
  int64_t now = 0;
  for (uint64_t row = 0;; ++row, now += kRowNs) {
    model::ThreadId thread = threads[row % threads.size()];
    if (row / threads.size() % 2 == 0) {
      run.sample(thread, any_stack(), now, static_cast<int64_t>(100'000 + random() % 100'000));
    } else {
      run.wait(thread, any_stack(), now, static_cast<int64_t>(50'000 + random() % 200'000));
    }
    std::error_code ignored;
    if (row % 1'000'000 == 0 && std::filesystem::file_size(path, ignored) >= megabytes * 1'000'000)
      break;
  }
  run.finish(now);
}

// A server that keeps the memory of its cache and frees the memory of its answers.
void make_heap(const std::string& path) {
  RunMaker run(path, 4 * kSecond, "heap");
  auto thread = run.thread("worker-1", "worker-*");
  model::StackId loop = run.push(run.push({}, run.frame("main")), run.frame("server::loop()"));
  model::StackId kept = run.push(run.push(loop, run.frame("server::load(Key const&)")),
                                 run.frame("server::Cache::insert(Entry)"));
  model::StackId passing = run.push(loop, run.frame("server::answer(Request const&)"));
  for (int64_t now = 0; now < 4 * kSecond; now += kSecond / 100) {
    run.allocation(thread, kept, now, 64 << 10, 0);
    run.allocation(thread, passing, now, 256 << 10, 3'000'000);
  }
  run.finish();
}

void make_hostile(const std::string& path) {
  RunMaker run(path, 2 * kSecond, "perf_event");
  auto thread = run.thread("<img src=x onerror=hacked()>", "</script>");
  std::vector<std::string> names{"<script>window.hacked=1</script>",
                                 "</script><script>window.hacked=2</script>",
                                 "\"><img src=x onerror=\"window.hacked=3\">",
                                 "'; window.hacked=4; //",
                                 "right-to-left \xe2\x80\xae evil name",
                                 std::string("bad utf-8 \xff\xfe\xc0"),
                                 std::string(100'000, 'L') + "_end",
                                 "javascript:window.hacked=5",
                                 "line\nbreak\ttab\x01 control",
                                 "${window.hacked=6} {{window.hacked=7}}"};
  model::StackId stack{};
  for (const std::string& name : names) stack = run.push(stack, run.frame(name));
  for (int i = 0; i < 150; ++i) run.sample(thread, stack, i * 10'000'000, 10'000'000);
  run.wait(thread, stack, 1'600'000'000, 300'000'000);
  run.finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr,
            "usage: make_run big FILE NODES [WAITS] | large FILE MEGABYTES | "
            "hostile|heap|empty|tiny|imported FILE\n");
    return 2;
  }
  std::string what = argv[1], path = argv[2];
  if (what == "big") {
    uint32_t nodes = argc > 3 ? static_cast<uint32_t>(atoi(argv[3])) : 1'000'000;
    make_big(path, nodes, argc > 4 ? static_cast<uint32_t>(atoi(argv[4])) : 0);
    return 0;
  }
  if (what == "large") {
    make_large(path, argc > 3 ? strtoull(argv[3], nullptr, 10) : 1000);
    return 0;
  }
  if (what == "hostile") {
    make_hostile(path);
    return 0;
  }
  if (what == "heap") {
    make_heap(path);
    return 0;
  }
  bool imported = what == "imported";
  if (!imported && what != "empty" && what != "tiny") return 2;
  RunMaker run(path, what == "empty" ? 0 : kSecond, imported ? "import: folded" : "perf_event");
  if (what != "empty") {
    auto thread = run.thread("main", "main");
    model::StackId stack = run.push(run.push({}, run.frame("main")), run.frame("work"));
    for (int i = 0; i < (imported ? 500 : 1); ++i)
      run.sample(thread, stack, i * 2'000'000, 2'000'000);
  }
  run.finish();
  return 0;
}
