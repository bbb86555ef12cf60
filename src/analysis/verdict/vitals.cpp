#include "analysis/verdict/vitals.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "analysis/profile/gauge.h"

namespace assay::analysis {
namespace {

using model::SeriesScope;

constexpr double kServingShare = 0.03;
constexpr double kSaturatedThread = 0.85;

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || !std::isfinite(value)) return {};
  return value;
}

std::optional<double> ratio(double part, double whole) {
  if (whole <= 0) return {};
  return part / whole;
}

// Sums and gauges of the run's series by scope and name.
class SeriesSums {
 public:
  static Result<SeriesSums> read(const run::Reader& reader) {
    SeriesSums sums;
    const run::Contents& run = reader.contents();
    TimeNs begin = run.info.window_begin_ns, end = run.info.window_end_ns;
    for (const model::Series& series : run.series) {
      bool of_thread = series.scope == SeriesScope::thread && series.name != "migrations";
      if (of_thread || series.scope == SeriesScope::self || series.scope == SeriesScope::load) {
        continue;
      }
      auto points = reader.points(series.id);
      if (!points) return std::unexpected(points.error());
      sums.add(series, *points, begin, end);
    }
    return sums;
  }

  // Growth per second, summed over all series of that name; label must end with `suffix`.
  std::optional<double> rate(SeriesScope scope, std::string_view name,
                             std::string_view suffix = "") const {
    std::optional<double> sum;
    for (const Row& row : rows_) {
      if (row.is(scope, name, suffix) && row.rate) sum = sum.value_or(0) + *row.rate;
    }
    return sum;
  }
  std::optional<double> largest_rate(SeriesScope scope, std::string_view name) const {
    std::optional<double> most;
    for (const Row& row : rows_) {
      if (row.is(scope, name, "") && row.rate) most = std::max(most.value_or(0), *row.rate);
    }
    return most;
  }
  // Share of the window in which the value was above `limit`; the worst of the series of that name.
  std::optional<double> above_zero(SeriesScope scope, std::string_view name,
                                   std::string_view suffix = "") const {
    std::optional<double> most;
    for (const Row& row : rows_) {
      if (row.is(scope, name, suffix) && row.above) most = std::max(most.value_or(0), *row.above);
    }
    return most;
  }
  std::optional<double> mean(SeriesScope scope, std::string_view name,
                             std::string_view suffix = "") const {
    std::optional<double> sum;
    for (const Row& row : rows_) {
      if (row.is(scope, name, suffix) && row.mean) sum = sum.value_or(0) + *row.mean;
    }
    return sum;
  }
  std::optional<double> rate_of(SeriesScope scope, std::string_view name,
                                const std::string& label) const {
    for (const Row& row : rows_) {
      if (row.is(scope, name, "") && row.label == label) return row.rate;
    }
    return {};
  }
  std::vector<std::string> labels(SeriesScope scope, std::string_view name) const {
    std::vector<std::string> all;
    for (const Row& row : rows_) {
      if (row.is(scope, name, "")) all.push_back(row.label);
    }
    return all;
  }

 private:
  struct Row {
    SeriesScope scope;
    std::string name, label;
    std::optional<double> rate, above, mean;
    bool is(SeriesScope s, std::string_view n, std::string_view suffix) const {
      return scope == s && name == n && std::string_view(label).ends_with(suffix);
    }
  };

  void add(const model::Series& series, const std::vector<model::Point>& points, TimeNs begin,
           TimeNs end) {
    Row row{series.scope, series.name, series.label, {}, {}, {}};
    // The last reading may lie a little outside the window: on a busy machine the poller comes
    // late.
    constexpr TimeNs kLateNs = kNsPerSecond;
    auto growth = growth_of(points, begin, end);
    if (!growth) growth = growth_of(points, begin - kLateNs, end + kLateNs);
    if (growth) {
      row.rate = static_cast<double>(growth->by) / seconds(growth->end_ns - growth->begin_ns);
    }
    Gauge gauge = gauge_of(points, begin, end);
    row.above = gauge.above_zero;
    row.mean = gauge.mean;
    rows_.push_back(std::move(row));
  }
  std::vector<Row> rows_;
};

double usable_cpus(const Measured& run, bool& bound) {
  double most = 0;
  for (const model::Fact& fact : run.facts) {
    if (!fact.scope.starts_with("process ")) continue;
    if (fact.key == "usable_cpus") most = std::max(most, number(fact.value).value_or(0));
    if (fact.key == "usable_cpus_bound_by" && fact.value != "host") bound = true;
  }
  if (most <= 0) most = run.cpus;
  return most;
}

void add_machine(const Measured& run, const SeriesSums& sums, Vitals& v) {
  double window = seconds(run.window_ns);
  v.window_s = window;
  v.samples = static_cast<double>(run.quality.samples);
  if (run.cpus > 0) v.host_cpus = run.cpus;
  bool bound = false;
  double usable = usable_cpus(run, bound);
  v.bound = bound && run.cpus > 0 && usable < run.cpus ? 1 : 0;
  if (window <= 0) return;
  v.cpus_used = seconds(run.thread_time.running_ns()) / window;
  if (usable > 0) {
    v.usable_cpus = usable;
    v.utilisation = *v.cpus_used / usable;
  }
  auto idle = sums.rate(SeriesScope::host, "cpu_idle"),
       disk = sums.rate(SeriesScope::host, "cpu_iowait");
  if (idle && run.cpus > 0) {
    double free = (*idle + disk.value_or(0)) / 1e9;
    v.host_busy = std::clamp(1 - free / run.cpus, 0.0, 1.0);
    v.other_cpus = std::max(0.0, run.cpus - free - *v.cpus_used);
  }
  if (auto softirq = sums.rate(SeriesScope::host, "cpu_softirq")) v.softirq_cpus = *softirq / 1e9;
  // A generator that Assay drove measured itself.
  v.generator_cpus = run.workload.generator_cpus;
  if (!v.generator_cpus) v.generator_cpus = run.others.cpus_of(model::Relation::load_generator);
  v.connected_cpus = run.others.cpus_of(model::Relation::connected);
  v.stranger_cpus = run.others.cpus_of(model::Relation::stranger);
  if (auto psi = sums.rate(SeriesScope::host, "psi_io_some")) v.psi_io = *psi / 1e9;
  v.hitm = sums.mean(SeriesScope::host, "hitm_share");
  if (const AcceleratorUse* busiest = busiest_accelerator(run.accelerators))
    v.accelerator_busy = busiest->busy;
}

// Each kind of wait adds to the number that it names.
void add_waits(const TimeSplit& serving, double busy, Vitals& v) {
  for (const VitalRow& vital : vital_rows()) {
    std::optional<int64_t> ns;
    for (const BlockKindRow& row : block_kinds()) {
      if (row.vital == vital.id) ns = ns.value_or(0) + serving.of(row.kind);
    }
    if (ns) v.*vital.field = ratio(static_cast<double>(*ns), busy);
  }
}

void add_thread_time(const Measured& run, Vitals& v) {
  TimeSplit serving = serving_time(run);
  auto busy = static_cast<double>(serving.busy_ns());
  auto share = [&](int64_t ns) { return ratio(static_cast<double>(ns), busy); };
  v.running = share(serving.running_ns());
  v.runqueue = share(serving.runqueue_ns);
  add_waits(serving, busy, v);
  if (run.handed_over.receive_ns) v.handoff_receive = share(*run.handed_over.receive_ns);
  if (run.handed_over.disk_ns) v.handoff_disk = share(*run.handed_over.disk_ns);
  v.kernel_cpu = ratio(static_cast<double>(run.thread_time.kernel_ns),
                       static_cast<double>(run.thread_time.running_ns()));
  v.idle = ratio(static_cast<double>(run.thread_time.idle_ns),
                 static_cast<double>(run.thread_time.wall_ns));
  v.runqueue_of_ready = ratio(static_cast<double>(serving.runqueue_ns),
                              static_cast<double>(serving.runqueue_ns + serving.running_ns()));
  v.empty_polls = run.wait_shapes.empty_polls;
  v.empty_wakeups = run.wait_shapes.empty_wakeups;
  v.delayed_ack = run.wait_shapes.delayed_ack;
  v.preempted = run.wait_shapes.preempted;
}

void add_roles(const Measured& run, Vitals& v) {
  std::array<double, kCategoryRoles> role{};
  for (const CategoryShare& share : run.categories) {
    if (share.category.breakdown != kSubsystem) continue;
    role[static_cast<size_t>(share.category.role)] += share.share.share;
  }
  if (run.on_cpu.samples == 0) return;
  v.allocator_cpu = role[static_cast<size_t>(CategoryRole::allocator)];
  v.spin_cpu = role[static_cast<size_t>(CategoryRole::spin)];
  v.accelerator_cpu = role[static_cast<size_t>(CategoryRole::accelerator)];
  v.network_cpu = role[static_cast<size_t>(CategoryRole::network)];
  v.collector_cpu = role[static_cast<size_t>(CategoryRole::collector)];
  v.lock_cpu = role[static_cast<size_t>(CategoryRole::lock)];
}

// The busiest pool whose every thread is ready to run nearly all the time.
void add_serial(const Measured& run, Vitals& v) {
  struct Pool {
    std::vector<double> ready, on;
  };
  std::map<std::pair<std::string, std::string>, Pool> pools;
  std::map<pid_t, std::string> program;
  for (const ProcessTime& process : run.processes)
    program[process.process.pid] = process.process.exe;
  for (const ThreadTime& thread : run.threads) {
    if (thread.time.wall_ns * 2 < run.window_ns || thread.time.wall_ns <= 0) continue;
    auto wall = static_cast<double>(thread.time.wall_ns);
    Pool& pool = pools[{program[thread.pid], thread.pool}];
    auto on = static_cast<double>(thread.time.running_ns());
    pool.on.push_back(on / wall);
    pool.ready.push_back((on + static_cast<double>(thread.time.runqueue_ns)) / wall);
  }
  const Pool* best = nullptr;
  double best_ready = 0, next = 0;
  size_t threads = 0, all_saturated = 0;
  for (auto& [key, pool] : pools) {
    std::vector<double> sorted = pool.ready;
    std::sort(sorted.rbegin(), sorted.rend());
    size_t saturated = static_cast<size_t>(std::count_if(
        sorted.begin(), sorted.end(), [](double r) { return r >= kSaturatedThread; }));
    all_saturated += saturated;
    // One thread stands out of its pool, or all of the pool is busy.
    bool alone = sorted.size() == 1 || sorted[1] < 0.7;
    size_t count = alone ? 1 : saturated;
    bool fits = alone || saturated == sorted.size();
    double ready = sorted[0];
    if (!alone && fits) ready = sorted.back();
    if (fits && ready > best_ready) {
      next = std::max(next, best ? best_ready : 0);
      best = &pool;
      best_ready = ready;
      threads = count;
    } else {
      next = std::max(next, sorted[0]);
    }
    if (best == &pool && alone && sorted.size() > 1) next = std::max(next, sorted[1]);
  }
  if (!best) return;
  v.serial_ready = best_ready;
  v.serial_on = *std::max_element(best->on.begin(), best->on.end());
  v.serial_next = next;
  // Stages that are all busy are together what the CPUs are.
  v.serial_threads = static_cast<double>(std::max(threads, all_saturated));
}

void add_limits(const SeriesSums& sums, Vitals& v) {
  for (const std::string& label : sums.labels(SeriesScope::cgroup, "periods")) {
    auto periods = sums.rate_of(SeriesScope::cgroup, "periods", label);
    auto throttled = sums.rate_of(SeriesScope::cgroup, "throttled_periods", label);
    if (!periods || !throttled || *periods <= 0) continue;
    v.throttled_periods = std::max(v.throttled_periods.value_or(0), *throttled / *periods);
  }
  if (auto held = sums.largest_rate(SeriesScope::cgroup, "throttled"))
    v.throttled_wall = *held / 1e9;
}

void add_sockets(const SeriesSums& sums, Vitals& v) {
  using enum SeriesScope;
  v.recv_q = sums.above_zero(socket, "recv_q", "inbound");
  v.backlog = sums.above_zero(socket, "accept_backlog");
  auto backlog = sums.mean(socket, "accept_backlog"),
       limit = sums.mean(socket, "accept_backlog_limit");
  if (backlog && limit && *limit > 0) v.backlog_full = *backlog / *limit;
  v.send_q = sums.above_zero(socket, "send_q", "inbound");
  auto connections = sums.mean(socket, "connections", "inbound");
  v.inbound = connections;
  v.outbound = sums.mean(socket, "connections", "outbound");
  auto per_connection = [&](const char* name) -> std::optional<double> {
    auto rate = sums.rate(socket, name, "bound");
    if (!rate) return {};
    double all = connections.value_or(0) + v.outbound.value_or(0);
    return *rate / 1e9 / std::max(1.0, all);
  };
  v.held_by_peer = per_connection("rwnd_limited");
  v.held_by_buffer = per_connection("sndbuf_limited");
  v.retransmits_per_s = sums.rate(socket, "retransmits", "bound");
}

void add_parallelism(const Parallelism& found, Vitals& v) {
  if (!found.known()) return;
  v.active = Parallelism::at_least(found.active, 1);
  v.one_at_a_time = ratio(*v.active - Parallelism::at_least(found.active, 2), *v.active);
  v.several_at_work = Parallelism::at_least(found.at_work, 2);
  v.busiest_thread = found.busiest_thread;
}

void add_memory_and_disk(const SeriesSums& sums, Vitals& v) {
  using enum SeriesScope;
  v.minor_faults_per_s = sums.rate(process, "minor_faults");
  v.major_faults_per_s = sums.rate(process, "major_faults");
  auto read = sums.rate(process, "read_bytes"), write = sums.rate(process, "write_bytes");
  if (read || write) v.disk_bytes_per_s = read.value_or(0) + write.value_or(0);
}

void add_hardware(const SeriesSums& sums, Vitals& v) {
  using enum SeriesScope;
  v.migrations_per_s = sums.rate(thread, "migrations");
  auto instructions = sums.rate(process, "instructions"), cycles = sums.rate(process, "cycles");
  if (!instructions || !cycles || *instructions <= 0 || *cycles <= 0) return;
  v.ipc = *instructions / *cycles;
  if (auto misses = sums.rate(process, "branch_misses"))
    v.branch_mpki = *misses / *instructions * 1000;
  v.llc_misses_per_s = sums.rate(process, "llc_misses");
  if (v.llc_misses_per_s) v.llc_mpki = *v.llc_misses_per_s / *instructions * 1000;
}

void add_load(const Measured& run, const SeriesSums& sums, Vitals& v) {
  const Workload& load = run.workload;
  double window = seconds(run.window_ns);
  uint64_t switches = 0;
  for (const ThreadTime& thread : run.threads) switches += thread.waits;
  if (window > 0) v.switches_per_s = static_cast<double>(switches) / window;
  if (!load.measured) return;
  v.generator_saturated = load.generator_saturated ? 1 : 0;
  v.open_loop = load.closed_loop ? 0 : 1;
  v.errors = ratio(static_cast<double>(load.errors), static_cast<double>(load.requests))
                 .value_or(load.errors > 0 ? 1 : 0);
  v.drift = load.drift_share;
  if (load.p50_ns) v.latency_ms = static_cast<double>(*load.p50_ns) / 1e6;
  if (load.concurrency() > 0) v.concurrency = load.concurrency();
  if (load.streams && load.connections && *load.connections > 0) {
    v.streams_per_connection = *load.streams;
  }
  if (load.throughput_per_s <= 0 || window <= 0) return;
  double requests = load.throughput_per_s * window;
  v.requests_per_s = load.throughput_per_s;
  v.cpu_us_per_request = seconds(run.thread_time.running_ns()) * 1e6 / requests;
  v.kernel_us_per_request = seconds(run.thread_time.kernel_ns) * 1e6 / requests;
  v.blocked_us_per_request = seconds(run.thread_time.blocked_total_ns()) * 1e6 / requests;
  v.switches_per_request = static_cast<double>(switches) / requests;
  double busy_ms = seconds(serving_time(run).busy_ns()) * 1e3 / requests;
  if (v.latency_ms && *v.latency_ms > 0) {
    v.unaccounted = std::clamp(1 - busy_ms / *v.latency_ms, 0.0, 1.0);
  }
  if (auto bytes = sums.rate(SeriesScope::socket, "bytes_acked", "inbound")) {
    v.bytes_out_per_request = *bytes / load.throughput_per_s;
  }
}

}  // namespace

std::set<std::string> serving_pools(const Measured& run) {
  std::map<std::string, int64_t> running;
  for (const ThreadTime& thread : run.threads) running[thread.pool] += thread.time.running_ns();
  std::set<std::string> serving;
  auto least = kServingShare * static_cast<double>(run.thread_time.running_ns());
  for (const auto& [pool, ns] : running) {
    if (ns > 0 && static_cast<double>(ns) >= least) serving.insert(pool);
  }
  return serving;
}

TimeSplit serving_time(const Measured& run) {
  TimeSplit sum;
  std::set<std::string> serving = serving_pools(run);
  for (const ThreadTime& thread : run.threads) {
    if (serving.contains(thread.pool)) sum.add(thread.time);
  }
  return sum;
}

Result<Vitals> read_vitals(const Measured& run, const run::Reader& reader) {
  auto sums = SeriesSums::read(reader);
  if (!sums) return std::unexpected(sums.error());
  Vitals v;
  add_machine(run, *sums, v);
  add_thread_time(run, v);
  add_roles(run, v);
  add_serial(run, v);
  add_parallelism(run.parallelism, v);
  add_limits(*sums, v);
  add_sockets(*sums, v);
  add_memory_and_disk(*sums, v);
  add_hardware(*sums, v);
  add_load(run, *sums, v);
  v.lost = run.quality.lost_share;
  v.unresolved = run.quality.on_cpu.unresolved;
  return v;
}

}  // namespace assay::analysis
