#include "formats/folded/read_folded.h"

#include <cmath>
#include <unordered_map>

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
    size_t begin = 0, depth = 0;
    while (begin <= line.stack.size() && depth < kDeepestStack) {
      size_t end = std::min(line.stack.find(';', begin), line.stack.size());
      std::string_view name = line.stack.substr(begin, end - begin);
      if (!name.empty()) stack = builder_.push(stack, frame(name));
      begin = end + 1;
      ++depth;
    }
    if (options_.unit_ns > 0) {
      auto ns = std::llround(std::min(line.value * static_cast<double>(options_.unit_ns), 9e18));
      auto count = options_.period_ns > 0 ? ns / options_.period_ns : 1;
      builder_.untimed_samples(thread_, stack, static_cast<uint64_t>(count), ns);
      return;
    }
    auto count = std::llround(line.value);
    int64_t each = options_.period_ns > 0 ? options_.period_ns : 1;
    if (count > 0 && count < INT64_MAX / each) {
      builder_.untimed_samples(thread_, stack, static_cast<uint64_t>(count), count * each);
    } else {
      overflow_ = overflow_ || count > 0;
    }
  }
  bool overflow() const { return overflow_; }

 private:
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
};

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

Result<void> read_folded(const Input& input, const ReadOptions& options, RunBuilder& builder) {
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
  return {};
}

}  // namespace assay::formats
