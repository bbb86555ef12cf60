#include "formats/folded/read_folded.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "formats/export/wait_leaf.h"

namespace assay::formats {
namespace {

// No profile has more samples than this: larger numbers are times.
constexpr double kMostSamples = 20e6;

struct Line {
  std::string_view stack;
  double value = 0;
};

std::optional<Line> parse_line(std::string_view text) {
  text = trimmed(text);
  size_t space = text.find_last_of(" \t");
  if (space == text.npos) return std::nullopt;
  auto value = parse_number<double>(text.substr(space + 1));
  constexpr double kMost = 9e18;
  if (!value || !std::isfinite(*value) || *value < 0 || *value > kMost) return std::nullopt;
  return Line{trimmed(text.substr(0, space)), *value};
}

bool is_skipped(std::string_view line) {
  line = trimmed(line);
  return line.empty() || line.starts_with('#');
}

using Names = std::vector<std::string_view>;

bool is_kernel_entry(std::string_view name) {
  return name.starts_with("entry_SYSCALL_") || name.starts_with("asm_exc_") ||
         name.starts_with("asm_sysvec_") || name.starts_with("el0t_64_");
}

// Where the kernel's functions begin in a stack, root first, that does not mark them: at its entry,
// or as far from the leaf as it takes for them to say what the wait's leaf says.
size_t kernel_begin(const Names& names, WaitLeaf leaf) {
  constexpr size_t kMostTried = 16;
  size_t entry = static_cast<size_t>(std::ranges::find_if(names, is_kernel_entry) - names.begin());
  if (entry < names.size() || leaf == kRunQueueLeaf) return entry;
  Names leaf_first(names.rbegin(), names.rend());
  for (size_t depth = 0; depth <= std::min(kMostTried, names.size()); ++depth) {
    std::span<const std::string_view> all = leaf_first;
    auto stack = analysis::evidence_of(all.first(depth), all.subspan(depth));
    auto kind = analysis::classify(stack, model::kNoSyscall, model::FdKind::none);
    if (blocked_leaf(kind) == leaf) return names.size() - depth;
  }
  return names.size();
}

class FoldedReader {
 public:
  FoldedReader(const ReadOptions& options, RunBuilder& builder)
      : options_(options), builder_(builder), thread_(builder.thread({})) {}

  void add(const Line& line) {
    names_.clear();
    std::optional<WaitLeaf> leaf;
    bool leaf_last = false;
    size_t begin = 0, depth = 0;
    while (begin <= line.stack.size() && depth < kDeepestStack) {
      size_t end = std::min(line.stack.find(';', begin), line.stack.size());
      std::string_view name = line.stack.substr(begin, end - begin);
      begin = end + 1;
      ++depth;
      if (name.empty()) continue;
      auto found = parse_wait_leaf(name);
      leaf_last = found.has_value();
      if (found) {
        leaf = found;
      } else {
        names_.push_back(name);
      }
    }
    size_t kernel = leaf_last ? kernel_begin(names_, *leaf) : names_.size();
    model::StackId stack;
    for (size_t i = 0; i < names_.size(); ++i) {
      stack = builder_.push(stack, frame(names_[i], i >= kernel));
    }
    if (!leaf && options_.meaning == Meaning::off)
      leaf = blocked_leaf(analysis::BlockKind::unknown);
    if (options_.unit_ns > 0) {
      auto ns = std::llround(std::min(line.value * static_cast<double>(options_.unit_ns), 9e18));
      put(stack, leaf, options_.period_ns > 0 ? ns / options_.period_ns : 1, ns);
      return;
    }
    double each = options_.period_ns > 0 ? static_cast<double>(options_.period_ns) : 1;
    if (line.value * each > 9e18) {
      overflow_ = true;
      return;
    }
    counted_ += line.value;
    auto count = std::llround(line.value);
    if (static_cast<double>(count) != line.value) ++rounded_;
    put(stack, leaf, count, options_.period_ns > 0 ? std::llround(line.value * each) : count);
  }
  bool overflow() const { return overflow_; }
  double counted() const { return counted_; }    // samples so far
  uint64_t rounded() const { return rounded_; }  // lines whose count was no whole number

 private:
  void put(model::StackId stack, std::optional<WaitLeaf> leaf, int64_t count, int64_t ns) {
    if (ns <= 0) return;
    auto rows = static_cast<uint64_t>(count);
    if (!leaf) return builder_.untimed_samples(thread_, stack, rows, ns);
    bool queued = *leaf == kRunQueueLeaf;
    builder_.untimed_waits(thread_, stack, rows, queued ? 0 : ns, queued ? ns : 0);
  }

  model::FrameId frame(std::string_view text, bool in_kernel) {
    auto [it, added] = frames_[in_kernel].try_emplace(std::string(stored(text)));
    if (!added) return it->second;
    using enum model::ModuleKind;
    std::string_view name = it->first;
    if (auto marker = marker_frame(builder_, name)) return it->second = *marker;
    model::ModuleId module;
    if (in_kernel || name.ends_with("_[k]")) {
      module = builder_.module(kernel, "[kernel]", "");
    } else if (name.ends_with("_[j]")) {
      module = builder_.module(anonymous, "[anon]", "");
    } else {
      module = builder_.module(elf, "[unknown]", "");
    }
    bool marked = name.ends_with("_[k]") || name.ends_with("_[j]") || name.ends_with("_[i]");
    if (marked) name.remove_suffix(4);
    model::Location location;
    location.function = std::string(name);
    return it->second = builder_.named_frame(module, std::span(&location, 1));
  }

  const ReadOptions& options_;
  RunBuilder& builder_;
  model::ThreadId thread_;
  std::unordered_map<std::string, model::FrameId> frames_[2];  // the kernel's are the second
  Names names_;                                                // of the line at hand
  bool overflow_ = false;
  double counted_ = 0;
  uint64_t rounded_ = 0;
};

// Assay's own stacks of wall time: their leaves tell waits from running, and they are in ns.
bool has_wait_leaves(std::string_view text) {
  return text.find("[blocked: ") != text.npos || text.find("[run queue]") != text.npos;
}

// As `assay record --out-dir` and others name such files.
Meaning meaning_by_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.find(".offcpu.") != name.npos) return Meaning::off;
  return name.find(".oncpu.") != name.npos ? Meaning::cpu : Meaning::unsaid;
}

bool is_named_as_by_record(std::string_view path) {
  return path.ends_with(".oncpu.folded") || path.ends_with(".offcpu.folded");
}

void add_notes(const ReadOptions& options, bool told_by_leaves, uint64_t rounded,
               RunBuilder& builder) {
  if (options.unit_ns == 0 && options.period_ns == 0) {
    builder.set_unit("samples");
    builder.note("unit",
                 "the imported file counts samples and does not say how long one is: each is taken "
                 "as 1 ns, so shares hold and times do not",
                 "assay import --freq HZ, or --unit ns|us|ms when its numbers are times");
  } else if (options.period_ns == 0) {
    builder.note("samples",
                 "the imported file has times, not samples: each distinct stack counts "
                 "as one sample, and intervals say nothing");
  }
  if (options.meaning == Meaning::unsaid && !told_by_leaves) {
    builder.fact("meaning", "unsaid");
    builder.note(
        "meaning",
        "folded stacks do not say whether they hold time on the CPU or time blocked: these "
        "are taken as time on the CPU",
        "assay import --as off when they are waits, --as cpu when they are not");
  }
  if (rounded > 0) {
    builder.note("counts",
                 fmt::format("{} lines of the imported file have counts that are no whole numbers: "
                             "samples are rounded{}",
                             rounded, options.period_ns > 0 ? ", their time is kept" : ""),
                 options.period_ns > 0 ? "" : "assay import --freq HZ keeps them as time");
  }
}

}  // namespace

bool looks_folded(std::string_view bytes) {
  Lines lines(bytes.substr(0, 1 << 16));
  for (std::string_view line; lines.next(line);) {
    if (is_skipped(line)) continue;
    // The last line may have been cut by the limit above.
    return parse_line(line).has_value() && (lines.offset() > 0 || line.size() < 1 << 16);
  }
  return false;
}

Result<void> read_folded(const Input& input, const ReadOptions& told, RunBuilder& builder) {
  ReadOptions options = told;
  bool told_by_leaves = has_wait_leaves(input.bytes());
  if (told_by_leaves && options.unit_ns == 0) options.unit_ns = 1;
  if (options.meaning == Meaning::unsaid) options.meaning = meaning_by_name(input.name());
  bool silent = !options.unit_said && options.unit_ns == 0 && options.period_ns == 0;
  if (silent && is_named_as_by_record(input.name())) {
    options.unit_ns = 1;
    silent = false;
    builder.note(
        "unit",
        "the imported file is named as assay record --out-dir names stacks: its numbers are "
        "taken as ns",
        "assay import --unit samples|us|ms, when another tool wrote it");
  }
  FoldedReader reader(options, builder);
  Lines lines(input.bytes());
  for (std::string_view line; lines.next(line);) {
    if (is_skipped(line)) continue;
    auto parsed = parse_line(line);
    if (!parsed) return input.fail_at(lines.offset(), "a line without a value");
    reader.add(*parsed);
    if (reader.overflow()) return input.fail_at(lines.offset(), "a value that is too large");
    if (silent && reader.counted() > kMostSamples) {
      return fail_with_remedy(
          fmt::format("{}: more than {:.0f} samples are counted at offset {}", input.name(),
                      kMostSamples, lines.offset()),
          "if its numbers are times, say so with --unit ns, us or ms; if they are samples, say how "
          "long one is with --freq HZ");
    }
    if (auto done = builder.flush_if_full(); !done) return done;
  }
  builder.set_event(options.unit_ns > 0 ? "time" : "samples", options.period_ns);
  add_notes(options, told_by_leaves, reader.rounded(), builder);
  return {};
}

}  // namespace assay::formats
