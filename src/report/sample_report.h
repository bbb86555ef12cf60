// A small, fixed run for the tests of the renderers, and one full of hostile names. Test support
// only.
#pragma once

#include <string>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"

namespace assay::report {

// Another profiler's sums of a heap: no times.
inline analysis::FakeRun imported_heap_run(bool knows_freed = true) {
  analysis::FakeRun run;
  run.edit().info = {};
  run.edit().info.backend = "import: pprof";
  run.edit().info.target = "heap.pb.gz";
  if (!knows_freed) run.edit().facts.push_back({"import", "heap_freed", "absent"});
  auto thread = run.add_thread(run.add_process(0, "server"), 0, "server");
  int64_t all = knows_freed ? 1 : 0;
  run.add_heap_sum(
      {thread, run.stack({"main", "keep"}), 3'000'000, 30, all * 3'000'000, all * 30, 0});
  run.add_heap_sum({thread, run.stack({"main", "pass"}), 0, 0, all * 9'000'000, all * 90, 0});
  return run;
}

// A profile of goroutines: it counts them, and says nothing of time.
inline analysis::FakeRun imported_counts_run() {
  analysis::FakeRun run;
  run.edit().info = {};
  run.edit().info.window_end_ns = 32;
  run.edit().info.backend = "import: pprof";
  run.edit().info.target = "goroutine.pb.gz";
  run.edit().facts = {{"import", "unit", "goroutine"}, {"import", "waits", "absent"}};
  auto thread = run.add_thread(run.add_process(0, "server"), 0, "server");
  run.add_sample(thread, run.stack({"main.main", "runtime.selectgo", "runtime.gopark"}), 0, 32);
  return run;
}

inline void describe_sample_run(analysis::FakeRun& run) {
  constexpr int64_t kMs = kNsPerMs;
  model::RunInfo& info = run.edit().info;
  info.assay_version = "0.1.0";
  info.backend = "perf_event";
  info.target = "--port 8000";
  info.command_line = "assay record --port 8000 --for 2s";
  info.oncpu_event = "cpu-clock";
  info.window_begin_ns = 1'000'000 * kMs;
  info.window_end_ns = 1'002'000 * kMs;
  info.utc_begin_ns = 1'763'184'072'000'000'000;
  run.edit().facts = {{"host", "hostname", "lab"},
                      {"host", "kernel", "6.18.1"},
                      {"host", "cpus_online", "4"},
                      {"host", "cpu_model", "Example CPU"},
                      {"process 0", "build", "release"}};
  model::OtherUsers others;
  others.cpus = {0.31, 0, 0.84, 0, 0};
  others.largest = {{"stress", 912, 2, "batch.service", 0.84, 0, model::Relation::stranger},
                    {"wrk", 4711, 1, "", 0.31, 0, model::Relation::load_generator},
                    {"backup", 77, 1, "backup.service", 0.01, 23.5e6, model::Relation::stranger}};
  for (const model::Fact& fact : model::to_facts(others)) run.edit().facts.push_back(fact);
}

inline void add_device(analysis::FakeRun& run, const model::Accelerator& device, int64_t busy_milli,
                       int64_t power_mw) {
  for (const model::Fact& fact : model::to_facts(device)) run.edit().facts.push_back(fact);
  TimeNs begin = run.edit().info.window_begin_ns;
  for (auto [name, value] : {std::pair(model::kAcceleratorBusy, busy_milli),
                             std::pair(model::kAcceleratorPower, power_mw)}) {
    run.add_series(model::SeriesScope::host, 0, name, {{begin, value}, {begin + 1000, value}});
    run.edit().series.back().label = device.device;
  }
}

inline analysis::FakeRun sample_run() {
  using model::WaitFlag;
  constexpr int64_t kMs = kNsPerMs;
  analysis::FakeRun run;
  describe_sample_run(run);
  add_device(run, {"nvidia0", "Example GPU", 16'000'000'000, 300, true}, 412, 180'500);
  TimeNs t0 = run.edit().info.window_begin_ns;
  auto process = run.add_process(4242, "/opt/server");
  auto loop = run.add_thread(process, 4242, "server");
  auto w1 = run.add_thread(process, 4243, "worker-1", "worker-*");
  auto w2 = run.add_thread(process, 4244, "worker-2", "worker-*");
  auto child = run.add_process(4300, "/opt/logger", "worker 0");
  auto log = run.add_thread(child, 4300, "logger");

  auto handle = run.stack({"libc.so.6:__libc_start_main", "main", "kv::Server::run()",
                           "kv::Connection::on_readable(int)", "kv::Parser::parse|kv::Parser::next",
                           "kv::Store::put(std::string_view, std::string_view)"});
  auto copy =
      run.stack({"libc.so.6:clone3", "start_thread", "kv::Worker::loop()",
                 "kv::Worker::apply(kv::Batch const&)", "kv::Table::insert", "kv::Table::grow",
                 "std::vector<kv::Entry, std::allocator<kv::Entry> >::reserve(unsigned long)",
                 "kv::Entry::Entry(kv::Entry&&)", "operator new(unsigned long)", "libc.so.6:malloc",
                 "libc.so.6:_int_malloc"});
  auto kernel = run.stack({"libc.so.6:clone3", "start_thread", "kv::Worker::loop()",
                           "libc.so.6:write", "k:do_syscall_64", "k:ksys_write", "k:vfs_write",
                           "k:tcp_sendmsg", "k:copy_user_generic"});
  auto unnamed = run.stack({"!:2", "?:0x4c2f0"});
  auto epoll =
      run.stack({"libc.so.6:__libc_start_main", "main", "kv::Server::run()", "libc.so.6:epoll_wait",
                 "k:do_syscall_64", "k:do_epoll_wait", "k:ep_poll", "k:schedule", "k:__schedule"});
  auto mutex = run.stack({"libc.so.6:clone3", "start_thread", "kv::Worker::loop()",
                          "kv::Store::lock_shard(unsigned int)", "libc.so.6:pthread_mutex_lock",
                          "libc.so.6:__lll_lock_wait", "k:do_syscall_64", "k:do_futex",
                          "k:futex_wait_queue", "k:schedule", "k:__schedule"});
  auto fsync = run.stack(
      {"main", "libc.so.6:fdatasync", "k:do_fsync", "k:jbd2_log_wait_commit", "k:schedule"});
  for (int i = 0; i < 60; ++i) run.add_sample(loop, handle, t0 + i * 20 * kMs, 10 * kMs);
  for (int i = 0; i < 70; ++i) run.add_sample(w1, copy, t0 + i * 20 * kMs, 10 * kMs);
  for (int i = 0; i < 30; ++i) run.add_sample(w2, kernel, t0 + i * 20 * kMs, 10 * kMs);
  for (int i = 0; i < 5; ++i) run.add_sample(w2, unnamed, t0 + i * 20 * kMs, 10 * kMs);
  run.add_wait(loop, epoll, t0 - 50 * kMs, 250 * kMs, {WaitFlag::open_start});
  for (int i = 0; i < 12; ++i) run.add_wait(loop, epoll, t0 + (300 + i * 140) * kMs, 100 * kMs);
  for (int i = 0; i < 120; ++i) {
    run.add_wait(w1, mutex, t0 + i * 16 * kMs, 8 * kMs + i * 10'000);
    run.add_wait(w2, mutex, t0 + i * 16 * kMs + kMs, 11 * kMs);
    run.add_wait(w2, mutex, t0 + i * 16 * kMs + 13 * kMs, kMs, {WaitFlag::preempted});
  }
  run.add_wait(log, fsync, t0, 1'500 * kMs);
  run.add_wait(log, {}, t0 + 1'600 * kMs, 400 * kMs, {WaitFlag::open_end});
  run.add_series(model::SeriesScope::thread, loop.value, "run",
                 {{t0, 0}, {t0 + 2'000 * kMs, 604 * kMs}});
  run.add_series(model::SeriesScope::self, 0, "cpu", {{t0, 0}, {t0 + 2'000 * kMs, 18 * kMs}});
  run.add_series(model::SeriesScope::self, 0, "rss", {{t0, 31'000'000}, {t0 + 1, 42'000'000}});
  run.edit().losses = {{model::LossKind::ring_records, 0, t0, 12}};
  run.edit().notes = {{"wake-ups", "run-queue delay is measured per thread, not per wait",
                       "mount -t tracefs tracefs /sys/kernel/tracing"}};
  return run;
}

inline analysis::FakeRun hostile_run() {
  analysis::FakeRun run;
  std::string evil =
      "\x1b[2J\x1b]0;owned\a\r\nroot | `rm` <script>alert(1)</script> @all \xe2\x80\xae";
  run.edit().info.target = evil;
  auto process = run.add_process(1, "/" + evil, evil);
  auto thread = run.add_thread(process, 1, "\xff\xfe\xc0\x80" + evil, evil);
  std::string endless(100'000, 'A');
  run.edit().notes = {{evil, evil + " " + endless, evil}};
  run.edit().facts = {{"host", "kernel", evil}, {evil, evil, "\xf0\x28\x8c\x28"}};
  model::OtherUsers others;
  others.largest = {{evil, 9, 1, endless, 1, 1e300, model::Relation::stranger}};
  for (const model::Fact& fact : model::to_facts(others)) run.edit().facts.push_back(fact);
  add_device(run, {evil, evil, 1, 1e300, true}, 1000, INT64_MAX);
  add_device(run, {endless, endless, UINT64_MAX, 1, false}, -1, -1);
  auto stack = run.stack({"libevil\x1b.so:" + endless, evil, "\xed\xa0\x80\xf5\x90\x80\x80"});
  for (int i = 0; i < 30; ++i) run.add_sample(thread, stack, i, 10 * kNsPerMs);
  run.add_wait(thread, stack, 100 * kNsPerMs, 500 * kNsPerMs);
  return run;
}

inline analysis::Report analysed(const analysis::FakeRun& run) {
  analysis::Options options;
  options.run_path = "run.assay";
  return analysis::analyse(run, options).value();
}

}  // namespace assay::report
