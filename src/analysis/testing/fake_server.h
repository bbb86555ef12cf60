// FakeServer: a synthetic run of a server whose threads repeat cycles of running and waiting.
//
// What a cycle spends where is exact, so a test can say what the verdict must be. Test support
// only.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {

// Failed expectations say the kind's name.
inline void PrintTo(VerdictKind kind, std::ostream* out) {
  *out << verdict_kind_id(kind);
}

struct Step {
  std::vector<std::string> stack;  // root first
  double ms = 0;
  bool waits = false;
  uint64_t futex = 0;  // address, for waits on a lock
  bool preempted = false;
  model::FdKind fd = model::FdKind::none;
};

inline Step runs(std::vector<std::string> stack, double ms) {
  return {std::move(stack), ms, false, 0, false, {}};
}
inline Step waits(std::vector<std::string> stack, double ms, uint64_t futex = 0) {
  return {std::move(stack), ms, true, futex, false, {}};
}
inline Step receives(std::vector<std::string> stack, double ms, model::FdKind fd) {
  return {std::move(stack), ms, true, 0, false, fd};
}
inline Step queues(double ms) {
  return {{"main"}, ms, true, 0, true, {}};
}

class FakeServer {
 public:
  explicit FakeServer(double seconds = 8, int cpus = 2, double hz = 100) : hz_(hz) {
    run_.edit().info.window_end_ns = static_cast<int64_t>(seconds * 1e9);
    run_.edit().info.sample_period_ns = static_cast<int64_t>(1e9 / hz);
    run_.edit().facts.push_back({"host", "cpus_online", std::to_string(cpus)});
    process_ = run_.add_process(100, "/opt/server");
  }

  FakeRun& run() { return run_; }
  model::ProcessId process() const { return process_; }

  void fact(const std::string& key, const std::string& value) {
    run_.edit().facts.push_back({"process 0", key, value});
  }
  // One thread that repeats `cycle` over the whole window.
  model::ThreadId thread(const std::string& name, const std::string& pool,
                         const std::vector<Step>& cycle) {
    return thread_of(process_, name, pool, cycle);
  }
  model::ThreadId thread_of(model::ProcessId process, const std::string& name,
                            const std::string& pool, const std::vector<Step>& cycle) {
    auto id = run_.add_thread(process, next_tid_++, name, pool);
    TimeNs now = 0, end = run_.contents().info.window_end_ns;
    std::vector<model::StackId> stacks;
    for (const Step& step : cycle) stacks.push_back(run_.stack(step.stack));
    std::vector<double> credit(cycle.size());
    while (now < end) {
      for (size_t i = 0; i < cycle.size() && now < end; ++i) {
        auto ns = static_cast<int64_t>(cycle[i].ms * 1e6);
        if (cycle[i].waits) {
          wait(id, stacks[i], cycle[i], now, ns);
        } else {
          credit[i] += static_cast<double>(std::min(ns, end - now)) * hz_ / 1e9;
          for (; credit[i] >= 1; --credit[i]) {
            run_.add_sample(id, stacks[i], now, static_cast<int64_t>(1e9 / hz_));
          }
        }
        now += ns;
      }
    }
    return id;
  }
  // A counter of the host that grows evenly.
  void grows(model::SeriesScope scope, const std::string& name, double per_second,
             const std::string& label = "", uint32_t owner = 0) {
    TimeNs end = run_.contents().info.window_end_ns;
    auto total = static_cast<int64_t>(per_second * static_cast<double>(end) / 1e9);
    run_.add_series(scope, owner, name, {{0, 0}, {end / 2, total / 2}, {end, total}});
    run_.edit().series.back().label = label;
  }
  void level(model::SeriesScope scope, const std::string& name, int64_t value,
             const std::string& label = "") {
    TimeNs end = run_.contents().info.window_end_ns;
    run_.add_series(scope, 0, name, {{0, value}, {end / 2, value}, {end, value}});
    run_.edit().series.back().label = label;
    run_.edit().series.back().kind = model::SeriesKind::gauge;
  }
  // The host's CPUs were busy by this share.
  void host_busy(double share, int cpus = 2) {
    grows(model::SeriesScope::host, "cpu_idle", (1 - share) * cpus * 1e9);
  }
  void load(const std::string& key, const std::string& value) {
    if (!loaded_) {
      loaded_ = true;
      load("kind", "url");
      load("ended", "covered");
    }
    run_.edit().facts.push_back({"load", key, value});
  }

  Report report(const Options& options = {}) const { return analyse(run_, options).value(); }
  VerdictKind kind() const { return report().verdict.kind; }

 private:
  void wait(model::ThreadId id, model::StackId stack, const Step& step, TimeNs at, int64_t ns) {
    model::Wait& wait = run_.add_wait(id, stack, at, ns);
    wait.set(model::WaitFlag::runqueue_known);
    if (step.preempted) wait.set(model::WaitFlag::preempted);
    wait.fd_kind = step.fd;
    if (step.futex != 0) {
      wait.syscall = 202;
      wait.arg = step.futex;
    }
  }

  FakeRun run_;
  double hz_;
  model::ProcessId process_;
  pid_t next_tid_ = 101;
  bool loaded_ = false;
};

// Stacks that the tests share.
inline std::vector<std::string> below_loop(std::vector<std::string> rest) {
  std::vector<std::string> stack{"libc.so.6:clone3", "libc.so.6:start_thread", "Worker::loop"};
  stack.insert(stack.end(), rest.begin(), rest.end());
  return stack;
}
inline const std::vector<std::string> kTakeWork =
    below_loop({"Queue::pop", "libc.so.6:pthread_cond_wait", "k:do_syscall_64", "k:do_futex",
                "k:futex_wait_queue"});
inline const std::vector<std::string> kCompute = below_loop({"handle", "compute"});
inline const std::vector<std::string> kTakeLock =
    below_loop({"handle", "Table::put", "libc.so.6:pthread_mutex_lock", "libc.so.6:__lll_lock_wait",
                "k:do_futex", "k:futex_wait_queue"});
inline const std::vector<std::string> kWriteDisk =
    below_loop({"handle", "Log::append", "libc.so.6:fdatasync", "k:do_fsync", "k:io_schedule"});
inline const std::vector<std::string> kAskBackend =
    below_loop({"handle", "ask_backend", "libc.so.6:recv", "k:tcp_recvmsg", "k:sk_wait_data"});
inline const std::vector<std::string> kSendBlocked =
    below_loop({"handle", "reply", "libc.so.6:send", "k:tcp_sendmsg", "k:sk_stream_wait_memory"});
inline const std::vector<std::string> kSleep = below_loop(
    {"handle", "back_off", "libc.so.6:clock_nanosleep", "k:hrtimer_nanosleep", "k:do_nanosleep"});
inline const std::vector<std::string> kMalloc = below_loop(
    {"handle", "operator new(unsigned long)", "libc.so.6:malloc", "libc.so.6:_int_malloc"});
inline const std::vector<std::string> kSend = below_loop(
    {"handle", "reply", "libc.so.6:send", "k:do_syscall_64", "k:__sys_sendto", "k:tcp_sendmsg"});

// Four workers that compute and queue for the CPUs.
inline FakeServer busy_server() {
  FakeServer server;
  for (int i = 0; i < 4; ++i) {
    server.thread("worker-" + std::to_string(i), "worker-*",
                  {runs(kCompute, 9), queues(10), waits(kTakeWork, 0.5)});
  }
  return server;
}

}  // namespace assay::analysis
