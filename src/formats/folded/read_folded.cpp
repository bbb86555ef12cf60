#include "formats/folded/read_folded.h"

#include <cmath>
#include <unordered_map>

#include "formats/wait_leaf.h"

namespace assay::formats {
namespace {

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

class FoldedReader {
 public:
  FoldedReader(const ReadOptions& options, RunBuilder& builder)
      : options_(options), builder_(builder), thread_(builder.thread({})) {}

  void add(const Line& line) {
    model::StackId stack;
    std::optional<WaitLeaf> leaf;
    size_t begin = 0, depth = 0;
    while (begin <= line.stack.size() && depth < kDeepestStack) {
      size_t end = std::min(line.stack.find(';', begin), line.stack.size());
      std::string_view name = line.stack.substr(begin, end - begin);
      begin = end + 1;
      ++depth;
      if (name.empty()) continue;
      if (auto found = parse_wait_leaf(name)) {
        leaf = found;
      } else {
        stack = builder_.push(stack, frame(name));
      }
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
    auto count = std::llround(line.value);
    if (static_cast<double>(count) != line.value) ++rounded_;
    put(stack, leaf, count, options_.period_ns > 0 ? std::llround(line.value * each) : count);
  }
  bool overflow() const { return overflow_; }
  uint64_t rounded() const { return rounded_; }  // lines whose count was no whole number

 private:
  void put(model::StackId stack, std::optional<WaitLeaf> leaf, int64_t count, int64_t ns) {
    if (ns <= 0) return;
    auto rows = static_cast<uint64_t>(count);
    if (!leaf) return builder_.untimed_samples(thread_, stack, rows, ns);
    bool queued = *leaf == kRunQueueLeaf;
    builder_.untimed_waits(thread_, stack, rows, queued ? 0 : ns, queued ? ns : 0);
  }

  model::FrameId frame(std::string_view text) {
    auto [it, added] = frames_.try_emplace(std::string(stored(text)));
    if (!added) return it->second;
    using enum model::ModuleKind;
    std::string_view name = it->first;
    if (auto marker = marker_frame(builder_, name)) return it->second = *marker;
    model::ModuleId module;
    if (name.ends_with("_[k]")) {
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
  std::unordered_map<std::string, model::FrameId> frames_;
  bool overflow_ = false;
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

void add_notes(const ReadOptions& options, bool told_by_leaves, uint64_t rounded,
               RunBuilder& builder) {
  if (options.unit_ns == 0 && options.period_ns == 0) {
    builder.fact("unit", "samples");
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
  FoldedReader reader(options, builder);
  Lines lines(input.bytes());
  for (std::string_view line; lines.next(line);) {
    if (is_skipped(line)) continue;
    auto parsed = parse_line(line);
    if (!parsed) return input.fail_at(lines.offset(), "a line without a value");
    reader.add(*parsed);
    if (reader.overflow()) return input.fail_at(lines.offset(), "a value that is too large");
  }
  builder.set_event(options.unit_ns > 0 ? "time" : "samples", options.period_ns);
  add_notes(options, told_by_leaves, reader.rounded(), builder);
  return {};
}

}  // namespace assay::formats
