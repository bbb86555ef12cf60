// bench/unwind/truth: are our frames elfutils' frames, and how much faster are they found?
//
// Usage: unwind_truth NAME COPY_BYTES MAX_SAMPLES -- COMMAND…     one row of the table per call
// Records the command with perf_event, walks every raw sample with both unwinders, prints how many
// agree, each kind of difference with an example, and the time per frame of each on the same
// samples.
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "elfutils_unwinder.h"
#include "unwind/testing/stack_recorder.h"

namespace {

using namespace assay;
using unwind::testing::Playback;
using unwind::testing::RecordedEvent;
using unwind::testing::StackRecorder;
using Clock = std::chrono::steady_clock;

struct Difference {
  uint64_t count = 0;
  std::string example;
};

struct Totals {
  uint64_t samples = 0, equal = 0, ours_longer = 0, complete = 0, frame_pointers = 0;
  uint64_t our_frames = 0, their_frames = 0;
  std::map<std::string, uint64_t> ends;
  std::map<std::string, Difference> differences;
};

std::string describe(uint64_t pc, const model::AddressSpace& space,
                     const model::ModuleTable& modules) {
  const model::Mapping* m = space.find(pc);
  if (!m) return fmt::format("{:#x}", pc);
  const std::string& path = modules[m->module].path;
  return fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), m->to_module_address(pc));
}

std::string describe_all(const unwind::UserStack& ours,
                         const std::vector<bench::ElfutilsUnwinder::Frame>& theirs, size_t from,
                         const model::AddressSpace& space, const model::ModuleTable& modules) {
  std::string out;
  for (size_t i = from > 2 ? from - 2 : 0; i < from + 3; ++i) {
    out += fmt::format("      {:>3} {:<46} {}\n", i,
                       i < ours.frames.size() ? describe(ours.frames[i].pc, space, modules) : "-",
                       i < theirs.size() ? describe(theirs[i].pc, space, modules) : "-");
  }
  return out;
}

// The first frame in which they differ, in words; "" when equal.
std::string kind_of_difference(const unwind::UserStack& ours,
                               const std::vector<bench::ElfutilsUnwinder::Frame>& theirs,
                               size_t& at) {
  size_t common = std::min(ours.frames.size(), theirs.size());
  for (at = 0; at < common; ++at) {
    if (ours.frames[at].pc != theirs[at].pc) return "another frame";
  }
  std::string how = ours.end == model::StackEnd::complete
                        ? (ours.used_frame_pointers ? "complete, by frame pointers" : "complete")
                        : std::string(model::stack_end_text(ours.end));
  if (ours.frames.size() > common) return "ours goes further: " + how;
  if (theirs.size() > common) return "elfutils goes further: " + how;
  return "";
}

class Comparison {
 public:
  explicit Comparison(const std::vector<RecordedEvent>& events) : events_(events) {}

  // Walks every sample with elfutils and with ours, and compares.
  void compare() {
    Playback playback;
    auto ours = unwind::Unwinder::create("");
    play(
        playback,
        [&](const RecordedEvent& e, const unwind::RawStack& raw, const model::AddressSpace& space) {
          const unwind::UserStack& stack = ours->unwind(raw, space);
          compare_one(stack, theirs(e.pid, space, playback.modules()).unwind(raw), space,
                      playback.modules());
        },
        *ours);
  }

  // Nanoseconds per frame of our walk over the same samples. `fresh`: without remembered walks.
  double time_ours(bool fresh) {
    Playback playback;
    auto ours = unwind::Unwinder::create("");
    uint64_t frames = 0;
    Clock::duration spent{};
    play(
        playback,
        [&](const RecordedEvent& e, const unwind::RawStack& raw, const model::AddressSpace& space) {
          if (fresh) ours->forget_thread(e.tid);
          auto begin = Clock::now();
          frames += ours->unwind(raw, space).frames.size();
          spent += Clock::now() - begin;
        },
        *ours);
    return per_frame(spent, frames);
  }

  // The same of elfutils, with its modules already opened and its caches warm from compare().
  double time_theirs() {
    Playback playback;
    auto ours = unwind::Unwinder::create("");
    uint64_t frames = 0;
    Clock::duration spent{};
    play(
        playback,
        [&](const RecordedEvent& e, const unwind::RawStack& raw, const model::AddressSpace& space) {
          auto& elfutils = theirs(e.pid, space, playback.modules());
          auto begin = Clock::now();
          frames += elfutils.unwind(raw).size();
          spent += Clock::now() - begin;
        },
        *ours);
    return per_frame(spent, frames);
  }

  const Totals& totals() const { return totals_; }

 private:
  template <class OnSample>
  void play(Playback& playback, OnSample on_sample, unwind::Unwinder& ours) {
    playback.play(
        events_,
        [&](pid_t, const model::Mapping& mapping, const model::Module& module) {
          ours.prepare(0, mapping, module);
        },
        [&](const RecordedEvent& e, const model::AddressSpace& space) {
          if (e.registers.known == 0) return;  // taken in the kernel thread part of an exec
          unwind::RawStack raw{e.pid, e.tid, e.registers, e.copy, {}};
          on_sample(e, raw, space);
        });
  }

  static double per_frame(Clock::duration spent, uint64_t frames) {
    return frames == 0 ? 0
                       : std::chrono::duration<double, std::nano>(spent).count() / double(frames);
  }

  bench::ElfutilsUnwinder& theirs(pid_t pid, const model::AddressSpace& space,
                                  const model::ModuleTable& modules) {
    auto& slot = theirs_[{pid, space.generation()}];
    if (!slot) slot = std::make_unique<bench::ElfutilsUnwinder>(space, modules);
    return *slot;
  }

  void compare_one(const unwind::UserStack& ours,
                   const std::vector<bench::ElfutilsUnwinder::Frame>& theirs,
                   const model::AddressSpace& space, const model::ModuleTable& modules) {
    ++totals_.samples;
    totals_.our_frames += ours.frames.size();
    totals_.their_frames += theirs.size();
    totals_.complete += ours.end == model::StackEnd::complete;
    totals_.frame_pointers += ours.used_frame_pointers;
    if (ours.end != model::StackEnd::complete)
      ++totals_.ends[std::string(stack_end_text(ours.end))];
    size_t at = 0;
    std::string kind = kind_of_difference(ours, theirs, at);
    if (kind.empty()) {
      ++totals_.equal;
      return;
    }
    if (ours.joined) kind += ", joined";
    Difference& d = totals_.differences[kind];
    if (d.count++ < 2) d.example += describe_all(ours, theirs, at, space, modules) + "\n";
  }

  const std::vector<RecordedEvent>& events_;
  std::map<std::pair<pid_t, uint64_t>, std::unique_ptr<bench::ElfutilsUnwinder>> theirs_;
  Totals totals_;
};

void print(const std::string& name, const Totals& t, double fresh, double cached, double theirs) {
  auto share = [&](uint64_t n) { return t.samples ? 100.0 * double(n) / double(t.samples) : 0; };
  fmt::print(
      "{:<24} {:>7} {:>9} {:>8.3f}% {:>8.2f}% {:>7.2f}% {:>9.1f} {:>9.1f} {:>9.0f} {:>7.0f}x "
      "{:>7.0f}x\n",
      name, t.samples, t.our_frames, share(t.equal), share(t.complete), share(t.frame_pointers),
      fresh, cached, theirs, theirs / fresh, theirs / cached);
  for (const auto& [end, count] : t.ends) fmt::print("    ended: {:>6} {}\n", count, end);
  for (const auto& [kind, d] : t.differences) {
    fmt::print("    differs: {:>6} {}\n{}", d.count, kind, d.example);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || std::string(argv[4]) != "--") {
    fmt::print(stderr, "usage: {} NAME COPY_BYTES MAX_SAMPLES -- COMMAND...\n", argv[0]);
    return 2;
  }
  StackRecorder::Options options;
  options.copy_bytes = static_cast<uint32_t>(std::atoi(argv[2]));
  options.max_samples = static_cast<uint64_t>(std::atoi(argv[3]));
  auto recorder = StackRecorder::start({argv + 5, argv + argc}, options);
  if (!recorder) {
    fmt::print(stderr, "{}\n", recorder.error().text());
    return 1;
  }
  auto events = (*recorder)->run();
  Comparison comparison(events);
  comparison.compare();
  double fresh = comparison.time_ours(true), cached = comparison.time_ours(false);
  double theirs = comparison.time_theirs();
  print(argv[1], comparison.totals(), fresh, cached, theirs);
  return 0;
}
