#include "formats/import/run_builder.h"

#include <algorithm>

namespace assay::formats {
namespace {

constexpr uint64_t kFlushRows = 1'000'000;
// A file may claim any count: beyond so many rows of sums they are scaled to fewer.
constexpr uint64_t kMostUntimedRows = 20'000'000, kScaledRows = 2'000'000;
constexpr size_t kMostUntimedSums = 10'000'000;

constexpr int64_t kMostNs = INT64_MAX / 2;

std::string_view last_part(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

}  // namespace

RunBuilder::RunBuilder(run::Writer& writer, PoolOf pool_of)
    : writer_(writer), pool_of_(std::move(pool_of)) {}

void RunBuilder::begin_file(const std::string& name) {
  file_ = name;
  ++file_number_;
  file_unit_.clear();
}

model::ProcessId RunBuilder::process(const Who& who) {
  std::string name = who.process;
  if (name.empty()) name = last_part(who.exe.empty() ? file_ : who.exe);
  std::string key = who.pid != 0 ? std::to_string(who.pid)
                                 : fmt::format("{} {} {}", file_number_, name, who.role);
  auto [it, added] = process_ids_.try_emplace(key, static_cast<uint32_t>(processes_.size()));
  if (added) {
    model::Process& made = processes_.emplace_back();
    made.id = {it->second};
    made.pid = who.pid;
    made.exe = who.exe.empty() ? name : who.exe;
    made.comm = name;
    made.role = who.role.empty() ? made.comm : who.role;
  }
  return {it->second};
}

model::ThreadId RunBuilder::thread(const Who& who) {
  model::ProcessId owner = process(who);
  std::string key = who.tid != 0 ? fmt::format("{} {}", owner.value, who.tid)
                                 : fmt::format("{} {} {}", owner.value, who.thread, file_number_);
  auto [it, added] = thread_ids_.try_emplace(key, static_cast<uint32_t>(threads_.size()));
  if (added) {
    model::Thread& made = threads_.emplace_back();
    lives_.emplace_back();
    made.id = {it->second};
    made.process = owner;
    made.tid = who.tid;
    made.name = who.thread.empty() ? processes_[owner.value].comm : who.thread;
    made.pool = who.pool;
  }
  return {it->second};
}

void RunBuilder::rename_thread(model::ThreadId id, const std::string& name) {
  threads_[id.value].name = name;
}

void RunBuilder::rename_process(model::ThreadId of_thread, const std::string& name,
                                const std::string& exe) {
  model::Process& process = processes_[threads_[of_thread.value].process.value];
  if (!name.empty()) process.comm = process.role = name;
  if (!exe.empty()) process.exe = exe;
}

model::ModuleId RunBuilder::module(model::ModuleKind kind, const std::string& path,
                                   const std::string& build_id) {
  size_t before = modules_.all().size();
  model::ModuleId id = modules_.intern(kind, path, build_id);
  if (modules_.all().size() > before) writer_.add_module(modules_[id]);
  return id;
}

model::FrameId RunBuilder::frame(const model::Frame& frame, bool* is_new) {
  size_t before = frames_.all().size();
  model::FrameId id = frames_.intern(frame);
  bool added = frames_.all().size() > before;
  if (added) writer_.add_frame(id, frame);
  if (is_new != nullptr) *is_new = added;
  return id;
}

model::FrameId RunBuilder::named_frame(model::ModuleId module,
                                       std::span<const model::Location> names) {
  std::string key = std::to_string(module.value);
  for (const model::Location& at : names) {
    key += '\0' + at.function + '\0' + at.file + '\0' + std::to_string(at.line);
  }
  auto [it, added] = named_.try_emplace(std::move(key));
  if (added) {
    // No address is known; any that is not taken tells the frame from others of its module.
    bool is_new = false;
    while (!is_new) it->second = frame({module, next_address_[module.value]++}, &is_new);
    name(it->second, names);
  }
  return it->second;
}

void RunBuilder::name(model::FrameId frame, std::span<const model::Location> names) {
  if (frame.value >= is_named_.size()) is_named_.resize(frame.value + size_t{1});
  is_named_[frame.value] = true;
  writer_.put_locations(frame, names);
}

model::StackId RunBuilder::push(model::StackId parent, model::FrameId frame) {
  size_t before = stacks_.all().size();
  model::StackId id = stacks_.push(parent, frame);
  if (stacks_.all().size() > before) writer_.add_stack(id, stacks_[id]);
  return id;
}

model::StackId RunBuilder::marker(model::StackEnd end) {
  model::ModuleId assay = module(model::ModuleKind::marker, "[assay]", "");
  return push({}, frame({assay, static_cast<uint64_t>(end)}));
}

void RunBuilder::mapping(model::ThreadId of_thread, const model::Mapping& mapping, TimeNs from_ns) {
  writer_.add_mapping(threads_[of_thread.value].process, mapping, from_ns);
}

void RunBuilder::seen(model::ThreadId thread, TimeNs begin, TimeNs end, int64_t ns) {
  Life& life = lives_[thread.value];
  life.first = std::min(life.first, begin);
  life.last = std::max(life.last, end);
  life.known_ns = std::min(kMostNs / 2, life.known_ns + std::clamp<int64_t>(ns, 0, kMostNs / 2));
  first_ns_ = std::min(first_ns_, begin);
  last_ns_ = std::max(last_ns_, end);
}

void RunBuilder::sample(const model::Sample& sample) {
  seen(sample.thread, sample.time, sample.time + 1, sample.weight_ns);
  writer_.add_sample(sample);
  ++samples_;
  ++taken_;
  ++unflushed_;
}

void RunBuilder::wait(const model::Wait& wait) {
  seen(wait.thread, wait.start, wait.start + wait.duration_ns, wait.duration_ns);
  writer_.add_wait(wait);
  ++waits_;
  ++taken_;
  ++unflushed_;
}

void RunBuilder::wait_in_row(model::Wait wait) {
  const Life& life = lives_[wait.thread.value];
  if (life.first != INT64_MAX) wait.start = life.first + life.known_ns;
  waits_in_rows_ = true;
  this->wait(wait);
}

void RunBuilder::add_untimed(const UntimedSum& sum) {
  ++taken_;
  uint64_t key = uint64_t{sum.thread.value} << 32 | sum.stack.value;
  auto [it, added] = untimed_of_[static_cast<size_t>(sum.what)].try_emplace(
      key, static_cast<uint32_t>(untimed_.size()));
  if (added) {
    untimed_.push_back(sum);
    return;
  }
  UntimedSum& whole = untimed_[it->second];
  untimed_overflow_ =
      untimed_overflow_ || __builtin_add_overflow(whole.count, sum.count, &whole.count) ||
      __builtin_add_overflow(whole.ns, sum.ns, &whole.ns) ||
      __builtin_add_overflow(whole.runqueue_ns, sum.runqueue_ns, &whole.runqueue_ns);
}

void RunBuilder::untimed_samples(model::ThreadId thread, model::StackId stack, uint64_t count,
                                 int64_t ns) {
  if (ns <= 0 && count == 0) return;
  add_untimed({thread, stack, Untimed::running, std::max<uint64_t>(1, count), ns, 0});
}

void RunBuilder::untimed_waits(model::ThreadId thread, model::StackId stack, uint64_t count,
                               int64_t blocked_ns, int64_t runqueue_ns) {
  if (blocked_ns <= 0 && runqueue_ns <= 0) return;
  add_untimed({thread, stack, blocked_ns > 0 ? Untimed::blocked : Untimed::queued,
               std::max<uint64_t>(1, count), blocked_ns, runqueue_ns});
}

void RunBuilder::heap_sum(model::HeapSum sum) {
  constexpr int64_t kMost = INT64_MAX / 4;
  bool any = false;
  auto add = [&](int64_t& value, int64_t& total) {
    value = std::clamp<int64_t>(value, 0, kMost);
    any = any || value > 0;
    heap_overflows_ = heap_overflows_ || total > kMost - value;
    if (!heap_overflows_) total += value;
  };
  add(sum.live_bytes, heap_total_.live_bytes);
  add(sum.live_objects, heap_total_.live_objects);
  add(sum.bytes, heap_total_.bytes);
  add(sum.objects, heap_total_.objects);
  if (!any) return;
  sum.rate_bytes = std::clamp<int64_t>(sum.rate_bytes, 0, kMost);
  writer_.add_heap_sum(sum);
  ++heap_sums_;
  ++unflushed_;
}

void RunBuilder::note(const std::string& topic, const std::string& text,
                      const std::string& remedy) {
  writer_.add_note({topic, text, remedy});
}

void RunBuilder::fact(const std::string& key, const std::string& value) {
  writer_.add_fact({"import", key, value});
}

void RunBuilder::set_unit(const std::string& unit) {
  file_unit_ = unit;
  fact("unit", unit);
}

void RunBuilder::set_event(const std::string& name, int64_t period_ns) {
  if (event_.empty()) event_ = name;
  if (period_ns_ == 0) period_ns_ = period_ns;
}

Result<void> RunBuilder::flush_if_full() {
  if (untimed_.size() > kMostUntimedSums) {
    return fail_with_remedy(
        fmt::format("the input has more than {} stacks that differ", kMostUntimedSums),
        "import it in parts");
  }
  if (unflushed_ < kFlushRows) return {};
  unflushed_ = 0;
  put_nouns({});
  return writer_.flush(last_ns_);
}

// One sum as `count` rows, equal but for the remainder, one after another.
Result<void> RunBuilder::split(const UntimedSum& sum, TimeNs& clock) {
  auto count = static_cast<int64_t>(sum.count);
  for (int64_t i = 0; i < count; ++i) {
    if (auto done = flush_if_full(); !done) return done;
    int64_t ns = sum.ns / count + (i < sum.ns % count);
    if (sum.what == Untimed::running) {
      sample({clock, sum.thread, sum.stack, ns, 0});
      clock += ns;
      continue;
    }
    model::Wait row;
    row.start = clock;
    row.runqueue_ns = sum.runqueue_ns / count + (i < sum.runqueue_ns % count);
    row.duration_ns = ns + row.runqueue_ns;
    row.thread = sum.thread;
    row.stack = sum.stack;
    row.set(model::WaitFlag::runqueue_known);
    if (ns == 0) row.set(model::WaitFlag::preempted);
    wait(row);
    clock += row.duration_ns;
  }
  return {};
}

// Times stay as they are; every sum keeps one row at least.
void RunBuilder::scale_counts() {
  double counted = 0;
  for (const UntimedSum& sum : untimed_) counted += static_cast<double>(sum.count);
  if (counted <= static_cast<double>(kMostUntimedRows)) return;
  double scale = static_cast<double>(kScaledRows) / counted;
  for (UntimedSum& sum : untimed_) {
    auto rows = static_cast<uint64_t>(static_cast<double>(sum.count) * scale);
    sum.count = std::max<uint64_t>(1, rows);
  }
  note("counts",
       fmt::format("the imported file counts {:.0f} samples or waits: times are kept, counts are "
                   "scaled down by {:.0f}, so that a row stands for as many",
                   counted, 1 / scale));
}

Result<void> RunBuilder::lay_untimed() {
  scale_counts();
  int64_t total_ns = 0;
  for (const UntimedSum& sum : untimed_) {
    bool overflow = untimed_overflow_ || __builtin_add_overflow(total_ns, sum.ns, &total_ns) ||
                    __builtin_add_overflow(total_ns, sum.runqueue_ns, &total_ns);
    if (overflow || total_ns > kMostNs) return fail("the input's times add up to centuries");
  }
  TimeNs begin = first_ns_ == INT64_MAX ? 0 : first_ns_;
  std::vector<TimeNs> clocks(threads_.size(), begin);
  for (const UntimedSum& sum : untimed_) {
    if (auto done = split(sum, clocks[sum.thread.value]); !done) return done;
  }
  untimed_.clear();
  for (auto& of : untimed_of_) of.clear();
  return {};
}

void RunBuilder::put_nouns(const model::RunInfo& info) {
  for (model::Process& process : processes_) {
    process.begin_ns = info.window_begin_ns;
    writer_.put_process(process);
  }
  for (size_t i = 0; i < threads_.size(); ++i) {
    model::Thread& thread = threads_[i];
    if (thread.pool.empty()) thread.pool = pool_of_(thread.name);
    const Life& life = lives_[i];
    // A thread is as long as what is known of it: the source does not say what else it did, and a
    // longer life would be taken for running.
    thread.begin_ns = life.first == INT64_MAX ? info.window_begin_ns : life.first;
    thread.end_ns = thread.begin_ns + life.known_ns;
    if (whole_lives_) thread.end_ns = std::max(thread.end_ns, life.last);
    writer_.put_thread(thread);
  }
}

Result<void> RunBuilder::tell_of_heap() {
  if (!has_heap_) return {};
  if (heap_overflows_) return fail("the input's allocations add up to more than any memory holds");
  fact("heap", "sums");
  fact("heap_live", heap_lacks_live_ ? "absent" : "present");
  fact("heap_freed", heap_lacks_freed_ ? "absent" : "present");
  note("times",
       "the imported heap profile has sums without times: how the heap grew, when it was largest, "
       "how long allocations lived and what leaks cannot be told",
       "assay heap TARGET");
  if (heap_lacks_live_) note("heap", "the imported profile does not say what of it still lives");
  if (heap_lacks_freed_) {
    note("heap",
         "the imported profile knows what lives, not what was allocated and freed before it was "
         "taken");
  }
  return {};
}

Result<void> RunBuilder::finish(model::RunInfo info) {
  bool untimed = !untimed_.empty();
  if (auto done = lay_untimed(); !done) return done;
  if (auto done = tell_of_heap(); !done) return done;
  info.window_begin_ns = first_ns_ == INT64_MAX ? 0 : first_ns_;
  info.window_end_ns =
      std::max(last_ns_ == INT64_MIN ? 0 : last_ns_ + 1, info.window_begin_ns + duration_ns_);
  // The last thing known of a thread may lie beyond its last sample.
  for (const Life& life : lives_) {
    if (life.first != INT64_MAX) {
      info.window_end_ns = std::max(info.window_end_ns, life.first + life.known_ns);
    }
  }
  info.utc_begin_ns = utc_begin_ns_;
  info.sample_period_ns = period_ns_;
  info.oncpu_event = event_;
  bool heap_alone = has_heap_ && samples_ == 0 && waits_ == 0;
  fact("times", untimed || waits_in_rows_ || heap_alone ? "absent" : "present");
  fact("waits", waits_ > 0 ? "present" : "absent");
  if (untimed) {
    note("times",
         "the imported file has sums without times: rows are placed one after another on their thread's "
         "clock, and distributions of waits are means");
  }
  if (waits_in_rows_) {
    note(
        "times",
        "the imported file has waits alone: they stand one after another from each thread's first, "
        "as what threads did between them is unknown");
  }
  if (waits_ == 0 && !heap_alone) {
    note("waits",
         "the imported file says nothing of time off the CPU: what threads waited for is "
         "unknown, and their time is only what was sampled");
  }
  put_nouns(info);
  return writer_.finish(info);
}

}  // namespace assay::formats
