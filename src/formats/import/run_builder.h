// RunBuilder: what a reader of a foreign file finds becomes a run.
//
// In: threads, modules, frames, stacks, samples and waits from readers, of one file or several;
// out: the same through a run::Writer, each noun once. A reader that knows no times hands its sums
// over as untimed: they are laid one after another on their thread's clock, so that they add up,
// and the run says that it has no times. Equal ones are one sum; counts beyond what a run can be
// asked to hold stand as fewer rows of the same time. Sums of a heap profile stay sums. Bounded
// memory but for distinct nouns and untimed sums: rows are flushed as they come. Not thread-safe.
// Failures: the Writer's, from flush() and finish(); more distinct sums than can be held.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/heap/heap.h"
#include "model/location.h"
#include "model/module.h"
#include "model/process.h"
#include "model/run_info.h"
#include "model/stack.h"
#include "run/writer.h"

namespace assay::formats {

// Whose time it is, as far as the source says. Empty and 0: unknown.
struct Who {
  pid_t pid = 0;
  pid_t tid = 0;
  std::string process;  // its name
  std::string thread;
  std::string role;
  std::string pool;
  std::string exe;  // path of the program's file
};

class RunBuilder {
 public:
  using PoolOf = std::function<std::string(const std::string& thread_name)>;
  RunBuilder(run::Writer& writer, PoolOf pool_of);

  // Files are different programs unless they say otherwise: unknown processes are kept apart.
  void begin_file(const std::string& name);

  model::ThreadId thread(const Who& who);
  void rename_thread(model::ThreadId id, const std::string& name);
  void rename_process(model::ThreadId of_thread, const std::string& name, const std::string& exe);
  model::ModuleId module(model::ModuleKind kind, const std::string& path,
                         const std::string& build_id);
  // Interned by module and address; `is_new` tells whether it must be named yet.
  model::FrameId frame(const model::Frame& frame, bool* is_new = nullptr);
  // A frame that is known by its names rather than by its address, innermost first.
  model::FrameId named_frame(model::ModuleId module, std::span<const model::Location> names);
  void name(model::FrameId frame, std::span<const model::Location> names);
  model::StackId push(model::StackId parent, model::FrameId frame);
  model::StackId marker(model::StackEnd end);
  model::ProcessId process_of(model::ThreadId thread) const {
    return threads_[thread.value].process;
  }
  void mapping(model::ThreadId of_thread, const model::Mapping& mapping, TimeNs from_ns);

  void sample(const model::Sample& sample);
  void wait(const model::Wait& wait);
  // For sources that know nothing of a thread but its waits: each stands right behind the thread's
  // last one, so that what lay between them, which is unknown, is not taken for running.
  void wait_in_row(model::Wait wait);
  void untimed_samples(model::ThreadId thread, model::StackId stack, uint64_t count, int64_t ns);
  void untimed_waits(model::ThreadId thread, model::StackId stack, uint64_t count,
                     int64_t blocked_ns, int64_t runqueue_ns);

  // The file is a heap profile, even if there is nothing in it.
  void begin_heap() { has_heap_ = true; }
  // What it knows of one stack; values beyond reason are cut to what a run can hold.
  void heap_sum(model::HeapSum sum);
  // A file says nothing of what lives, or nothing of what was allocated and freed again.
  void heap_lacks_live() { heap_lacks_live_ = true; }
  void heap_lacks_freed() { heap_lacks_freed_ = true; }

  void note(const std::string& topic, const std::string& text, const std::string& remedy = "");
  void fact(const std::string& key, const std::string& value);  // of scope "import"
  void loss(const model::Loss& loss) { writer_.add_loss(loss); }
  void set_duration(int64_t ns) { duration_ns_ = std::max(duration_ns_, ns); }
  void set_begin_utc(int64_t ns) { utc_begin_ns_ = utc_begin_ns_ == 0 ? ns : utc_begin_ns_; }
  // What the file at hand counts when that is no time.
  void set_unit(const std::string& unit);
  void set_event(const std::string& name, int64_t period_ns);

  // The source tells of every time off the CPU: a thread lives from its first sign to its last.
  void set_lives_whole() { whole_lives_ = true; }

  const std::string& file_unit() const { return file_unit_; }
  uint64_t taken() const { return taken_; }  // samples and waits that readers handed over
  uint64_t samples() const { return samples_; }
  uint64_t waits() const { return waits_; }
  uint64_t heap_sums() const { return heap_sums_; }
  const model::ModuleTable& modules() const { return modules_; }
  const model::FrameTable& frames() const { return frames_; }
  bool is_named(model::FrameId frame) const {
    return frame.value < is_named_.size() && is_named_[frame.value];
  }

  // For readers to call between rows. Failures: also that there are too many untimed sums.
  Result<void> flush_if_full();
  // Fills in the window and finishes the run.
  Result<void> finish(model::RunInfo info);

 private:
  enum class Untimed : uint8_t { running, blocked, queued };
  struct UntimedSum {
    model::ThreadId thread;
    model::StackId stack;
    Untimed what = Untimed::running;
    uint64_t count = 0;
    int64_t ns = 0;
    int64_t runqueue_ns = 0;
  };
  struct Life {
    TimeNs first = INT64_MAX, last = INT64_MIN;
    int64_t known_ns = 0;  // samples and waits together
  };

  model::ProcessId process(const Who& who);
  void seen(model::ThreadId thread, TimeNs begin, TimeNs end, int64_t ns);
  void add_untimed(const UntimedSum& sum);
  void scale_counts();
  Result<void> lay_untimed();
  Result<void> tell_of_heap();
  void put_nouns(const model::RunInfo& info);
  Result<void> split(const UntimedSum& sum, TimeNs& clock);

  run::Writer& writer_;
  PoolOf pool_of_;
  std::string file_;
  int file_number_ = 0;
  std::vector<model::Process> processes_;
  std::vector<model::Thread> threads_;
  std::vector<Life> lives_;
  std::unordered_map<std::string, uint32_t> process_ids_, thread_ids_;
  model::ModuleTable modules_;
  model::FrameTable frames_;
  model::StackTable stacks_;
  std::unordered_map<std::string, model::FrameId> named_;
  std::unordered_map<uint32_t, uint64_t> next_address_;  // by module, of named_frame()
  std::vector<bool> is_named_;                           // by frame
  std::vector<UntimedSum> untimed_;
  std::array<std::unordered_map<uint64_t, uint32_t>, 3> untimed_of_;  // by what, thread and stack
  bool untimed_overflow_ = false, waits_in_rows_ = false;
  std::string file_unit_;
  TimeNs first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;
  int64_t duration_ns_ = 0, utc_begin_ns_ = 0, period_ns_ = 0;
  std::string event_;
  bool whole_lives_ = false;
  uint64_t heap_sums_ = 0;
  model::HeapSum heap_total_;
  bool has_heap_ = false, heap_overflows_ = false, heap_lacks_live_ = false,
       heap_lacks_freed_ = false;
  uint64_t samples_ = 0, waits_ = 0, taken_ = 0, unflushed_ = 0;
};

}  // namespace assay::formats
