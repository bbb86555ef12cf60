// bench/unwind/truth: compares Assay's frames with elfutils', and the speed of both.
//
// Usage: unwind_truth NAME COPY_BYTES MAX_SAMPLES SECONDS -- COMMAND…
//
// One call prints one row of the table. Records the command with perf_event, walks every raw sample
// with both unwinders, prints how many agree, each kind of difference with an example, and the time
// per frame of each on the same samples.
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "elfutils_unwinder.h"
#include "unwind/arch_x86_64.h"
#include "unwind/testing/stack_recorder.h"
#include "unwind/walker.h"

namespace {

using namespace assay;
using unwind::Walk;
using unwind::testing::Playback;
using unwind::testing::RecordedEvent;
using unwind::testing::StackRecorder;
using Clock = std::chrono::steady_clock;

struct Difference {
  uint64_t count = 0;
  std::string example;
};

struct Totals {
  uint64_t samples = 0, equal = 0, complete = 0, frame_pointers = 0;
  uint64_t our_frames = 0, their_frames = 0;
  std::map<std::string, Difference> ends;
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
  for (size_t i = from > 3 ? from - 3 : 0; i < from + 2; ++i) {
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
    ours_ = unwind::Unwinder::create("");
    playback_.play(
        events_,
        [&](pid_t, const model::Mapping& mapping, const model::Module& module) {
          ours_->prepare(0, mapping, module);
          if (module.id.value >= tables_.size()) tables_.resize(module.id.value + 1);
          auto& table = tables_[module.id.value];
          if (!table) table = unwind::testing::load_table(module);
        },
        [&](const RecordedEvent& e, const model::AddressSpace& space) {
          if (e.registers.known == 0) return;  // taken while the kernel built the process
          Sample s = prepare(e, space);
          const unwind::UserStack& stack = ours_->unwind(s.raw, space);
          compare_one(stack, s.elfutils->unwind(s.raw), space);
          samples_.push_back(s);
        });
  }

  // Nanoseconds per frame of the table walk alone, without caches, over the same samples.
  double time_walker() {
    Walk walk;
    auto scratch = std::make_unique<unwind::WalkScratch>();
    return time([&](const Sample& s) {
      unwind::Walker<unwind::X86_64>(s.raw, *s.code, s.code_version, *scratch, walk).run();
      return walk.stack.frames.size();
    });
  }

  // The same for the whole unwinder, with its exact cache and joins. Each state of an address space
  // is a process of its own here, so that replaying does not rebuild what a capture builds once.
  double time_unwinder() {
    return time([&](const Sample& s) {
      unwind::RawStack raw = s.raw;
      raw.pid = static_cast<pid_t>(s.code_version);
      return ours_->unwind(raw, *s.space).frames.size();
    });
  }

  // The same for elfutils, with its modules already opened and its caches warm from compare().
  double time_elfutils() {
    return time([&](const Sample& s) { return s.elfutils->unwind(s.raw).size(); });
  }

  const Totals& totals() const { return totals_; }

 private:
  struct Image {  // one state of one process's address space
    model::AddressSpace space;
    unwind::CodeMap code;
    uint32_t code_version = 0;
    std::unique_ptr<bench::ElfutilsUnwinder> elfutils;
  };
  struct Sample {
    unwind::RawStack raw;
    const model::AddressSpace* space;
    const unwind::CodeMap* code;
    uint32_t code_version;
    bench::ElfutilsUnwinder* elfutils;
  };

  Sample prepare(const RecordedEvent& e, const model::AddressSpace& space) {
    auto& image = images_[{e.pid, space.generation()}];
    if (!image) {
      image = std::make_unique<Image>();
      image->space = space;
      image->code_version = static_cast<uint32_t>(images_.size());
      image->code = unwind::CodeMap(space, [&](model::ModuleId id) {
        return id.value < tables_.size() ? tables_[id.value] : nullptr;
      });
      image->elfutils = std::make_unique<bench::ElfutilsUnwinder>(space, playback_.modules());
    }
    return {{e.pid, e.tid, e.registers, e.copy, {}},
            &image->space,
            &image->code,
            image->code_version,
            image->elfutils.get()};
  }

  // The cost of two clock readings; subtracted from the times of both unwinders.
  static Clock::duration clock_cost() {
    static const Clock::duration cost = [] {
      auto least = Clock::duration::max();
      for (int i = 0; i < 10000; ++i) {
        auto begin = Clock::now();
        least = std::min(least, Clock::now() - begin);
      }
      return least;
    }();
    return cost;
  }

  // Each sample is walked once per pass, its copy freshly read as a capture has just done; the
  // fastest pass counts, so that preemptions and other processes have no influence.
  template <class Unwind>
  double time(Unwind unwind_one) {
    constexpr int kPasses = 25;
    std::vector<Clock::duration> best(samples_.size(), Clock::duration::max());
    std::vector<std::byte> copy;
    uint64_t frames = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
      frames = 0;
      for (size_t i = 0; i < samples_.size(); ++i) {
        Sample s = samples_[i];
        copy.assign(s.raw.copy.begin(), s.raw.copy.end());
        s.raw.copy = copy;
        auto begin = Clock::now();
        frames += unwind_one(s);
        best[i] = std::min(best[i], Clock::now() - begin);
      }
    }
    std::chrono::duration<double, std::nano> spent{};
    for (auto b : best) spent += b - clock_cost();
    return frames == 0 ? 0 : spent.count() / double(frames);
  }

  void compare_one(const unwind::UserStack& ours,
                   const std::vector<bench::ElfutilsUnwinder::Frame>& theirs,
                   const model::AddressSpace& space) {
    const model::ModuleTable& modules = playback_.modules();
    ++totals_.samples;
    totals_.our_frames += ours.frames.size();
    totals_.their_frames += theirs.size();
    totals_.complete += ours.end == model::StackEnd::complete;
    totals_.frame_pointers += ours.used_frame_pointers;
    if (ours.end != model::StackEnd::complete) {
      Difference& d = totals_.ends[std::string(stack_end_text(ours.end))];
      if (d.count++ < 1) d.example = describe_all(ours, theirs, ours.frames.size(), space, modules);
    }
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
  Playback playback_;
  std::unique_ptr<unwind::Unwinder> ours_;
  std::vector<std::shared_ptr<const unwind::Table>> tables_;  // by module id
  std::map<std::pair<pid_t, uint64_t>, std::unique_ptr<Image>> images_;
  std::vector<Sample> samples_;
  Totals totals_;
};

void print(const std::string& name, const Totals& t, double walker, double all, double theirs) {
  auto share = [&](uint64_t n) { return t.samples ? 100.0 * double(n) / double(t.samples) : 0; };
  fmt::print(
      "{:<20} {:>7} {:>8} {:>8.3f}% {:>8.2f}% {:>6.1f}% {:>8.1f} {:>8.1f} {:>9.0f} {:>6.0f}x "
      "{:>6.0f}x\n",
      name, t.samples, t.our_frames, share(t.equal), share(t.complete), share(t.frame_pointers),
      walker, all, theirs, theirs / walker, theirs / all);
  for (const auto& [end, d] : t.ends)
    fmt::print("    ended: {:>6} {}\n{}", d.count, end, d.example);
  for (const auto& [kind, d] : t.differences) {
    fmt::print("    differs: {:>6} {}\n{}", d.count, kind, d.example);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--header") {
    fmt::print("{:<20} {:>7} {:>8} {:>9} {:>9} {:>7} {:>8} {:>8} {:>9} {:>7} {:>7}\n", "program",
               "samples", "frames", "equal", "complete", "by fp", "walk ns", "all ns", "elfutils",
               "walk", "all");
    return 0;
  }
  if (argc < 7 || std::string(argv[5]) != "--") {
    fmt::print(stderr, "usage: {} NAME COPY_BYTES MAX_SAMPLES SECONDS -- COMMAND...\n", argv[0]);
    return 2;
  }
  StackRecorder::Options options;
  options.period_ns = 200'000;
  options.copy_bytes = static_cast<uint32_t>(std::atoi(argv[2]));
  options.max_samples = static_cast<uint64_t>(std::atoi(argv[3]));
  auto recorder = StackRecorder::start({argv + 6, argv + argc}, options);
  if (!recorder) {
    fmt::print(stderr, "{}\n", recorder.error().text());
    return 1;
  }
  auto until = Clock::now() + std::chrono::seconds(std::atoi(argv[4]));
  auto events = (*recorder)->run([&] { return Clock::now() >= until; });
  Comparison comparison(events);
  comparison.compare();
  double walker = comparison.time_walker(), all = comparison.time_unwinder();
  print(argv[1], comparison.totals(), walker, all, comparison.time_elfutils());
  return 0;
}
