#include "formats/perf/read_perf_script.h"

#include <set>
#include <unordered_map>

namespace assay::formats {
namespace {

struct Head {
  std::string_view comm;
  pid_t pid = 0, tid = 0;
  int cpu = -1;
  std::optional<TimeNs> time;
  int64_t period = 0;
  std::string event;
  bool is_record = false;  // "PERF_RECORD_COMM: …": what perf shows beside samples when asked
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = trimmed(line)).empty()) {
    size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// "123.456789:" or "123.456789123:" to ns.
std::optional<TimeNs> parse_time(std::string_view word) {
  if (!word.ends_with(':')) return std::nullopt;
  word.remove_suffix(1);
  size_t dot = word.find('.');
  if (dot == word.npos) return std::nullopt;
  auto seconds = parse_number<uint32_t>(word.substr(0, dot));
  std::string digits(word.substr(dot + 1));
  if (!seconds || digits.empty() || digits.size() > 9) return std::nullopt;
  digits.resize(9, '0');
  auto ns = parse_number<uint32_t>(digits);
  if (!ns) return std::nullopt;
  return int64_t{*seconds} * kNsPerSecond + *ns;
}

// "12" or "12/13".
bool parse_ids(std::string_view word, Head& head) {
  size_t slash = word.find('/');
  auto first = parse_number<pid_t>(word.substr(0, slash));
  if (!first) return false;
  head.pid = head.tid = *first;
  if (slash == word.npos) return true;
  auto second = parse_number<pid_t>(word.substr(slash + 1));
  if (second) head.tid = *second;
  return second.has_value();
}

std::optional<Head> parse_head(std::string_view line) {
  std::vector<std::string_view> words = words_of(line);
  Head head;
  size_t ids = 0, after = 0;
  for (size_t i = 1; i < words.size() && !head.time; ++i) {
    head.time = parse_time(words[i]);
    after = i + 1;
    ids = i - 1;
  }
  if (!head.time) {
    for (ids = 1; ids < words.size() && !parse_ids(words[ids], head);) ++ids;
    after = ids + 1;
  } else if (words[ids].starts_with('[') && words[ids].ends_with(']')) {
    head.cpu = parse_number<int>(words[ids].substr(1, words[ids].size() - 2)).value_or(-1);
    if (ids == 0) return std::nullopt;
    --ids;
  }
  if (ids >= words.size() || ids == 0 || !parse_ids(words[ids], head)) return std::nullopt;
  head.comm = trimmed(line.substr(0, static_cast<size_t>(words[ids].data() - line.data())));
  if (after < words.size()) {
    if (auto period = parse_number<int64_t>(words[after]); period && *period >= 0) {
      head.period = *period;
      ++after;
    }
  }
  head.is_record = after < words.size() && words[after].starts_with("PERF_RECORD_");
  if (!head.is_record && after < words.size() && words[after].ends_with(':')) {
    head.event = std::string(words[after].substr(0, words[after].size() - 1));
    while (head.event.ends_with(':')) head.event.pop_back();
  }
  return head;
}

bool is_indented(std::string_view line) {
  return line.starts_with('\t') || line.starts_with(' ');
}

bool is_clock(std::string_view event) {
  return event.starts_with("cpu-clock") || event.starts_with("task-clock");
}

// What Assay writes of time off the CPU.
bool is_wait(std::string_view event) {
  return event == "off-cpu" || event == "runqueue";
}

// How well an event tells time.
enum class Rank : uint8_t { none, unnamed, tracepoint, counter, cycles, clock };

// "sched:sched_switch"; what follows the colon of a counter are modifiers, as in "cycles:ppp".
bool is_tracepoint(std::string_view event) {
  size_t colon = event.find(':');
  return colon != event.npos &&
         event.find_first_not_of("ukhGHpPSDIWeb", colon + 1) != std::string_view::npos;
}

Rank rank_of(std::string_view event) {
  if (event.empty()) return Rank::unnamed;
  if (is_clock(event)) return Rank::clock;
  bool cycles = event.starts_with("cycles") || event.starts_with("cpu-cycles") ||
                event.find("/cycles") != event.npos || event.find("/cpu-cycles") != event.npos;
  if (cycles) return Rank::cycles;
  return is_tracepoint(event) ? Rank::tracepoint : Rank::counter;
}

struct ChosenEvent {
  std::string name;
  Rank rank = Rank::none;  // none: there are no samples
};

// One event makes the run, as adding others to it would count time twice: the first of those that
// tell time best. Looks no further than the first clock.
ChosenEvent chosen_event(std::string_view text) {
  ChosenEvent best;
  Lines lines(text);
  for (std::string_view line; best.rank != Rank::clock && lines.next(line);) {
    if (line.empty() || is_indented(line) || line.starts_with('#')) continue;
    auto head = parse_head(line);
    if (!head || head->is_record || is_wait(head->event)) continue;
    if (Rank rank = rank_of(head->event); rank > best.rank) best = {head->event, rank};
  }
  return best;
}

class ScriptReader {
 public:
  ScriptReader(const Input& input, const ReadOptions& options, RunBuilder& builder)
      : input_(input),
        options_(options),
        builder_(builder),
        chosen_(chosen_event(input.bytes())),
        clock_(chosen_.rank == Rank::clock) {}

  Result<void> read() {
    Lines lines(input_.bytes());
    for (std::string_view line; lines.next(line);) {
      if (trimmed(line).empty()) {
        finish_sample();
        if (auto done = builder_.flush_if_full(); !done) return done;
      } else if (line.starts_with('#')) {
        continue;
      } else if (frame_line(line)) {
        if (!head_) return input_.fail_at(lines.offset(), "a frame that belongs to no sample");
      } else {
        finish_sample();
        head_ = parse_head(line);
        if (!head_)
          return input_.fail_at(lines.offset(), "a line that is neither sample nor frame");
        if (head_->is_record) head_.reset();
      }
    }
    finish_sample();
    if (found_ == 0) return input_.fail_at(input_.bytes().size(), "no sample");
    builder_.set_event(chosen_.name, clock_ ? 0 : options_.period_ns);
    if (!clock_ && options_.period_ns == 0 && builder_.samples() > 0) {
      std::string unit = chosen_.name.empty() ? "samples" : chosen_.name;
      builder_.set_unit(unit);
      builder_.note("unit",
                    fmt::format("the imported samples count {}, not time: where this run says ns, "
                                "read {}",
                                unit, unit),
                    "assay import --freq HZ says how long a sample is");
    }
    if (!input_.bytes().ends_with('\n')) {
      builder_.note("cut",
                    "the imported text ends in the middle of a line: its last sample may lack "
                    "frames, and others may be missing");
    }
    if (left_out_ > 0) {
      builder_.note("events", fmt::format("{} samples of other events were left out", left_out_));
    }
    return {};
  }

 private:
  // Takes an indented "addr symbol (file)" line in; false when it is none.
  bool frame_line(std::string_view line) {
    if (!is_indented(line)) return false;
    std::string_view text = trimmed(line);
    size_t space = std::min(text.find(' '), text.size());
    auto address = parse_number<uint64_t>(text.substr(0, space), 16);
    if (!address) return false;
    text = trimmed(text.substr(space));
    size_t open = text.rfind(" (");
    std::string_view file = "[unknown]";
    if (open != text.npos && text.ends_with(')')) {
      file = text.substr(open + 2, text.size() - open - 3);
      text = text.substr(0, open);
    }
    if (!head_) return true;
    bool inlined = file == "inlined";
    model::Location location;
    size_t plus = text.rfind("+0x");
    location.function = stored(plus == text.npos ? text : text.substr(0, plus));
    location.inlined = inlined;
    if (location.function == "[unknown]") location.function.clear();
    if (frames_.size() >= kDeepestStack) return true;
    names_.push_back(std::move(location));
    if (!inlined) {
      frames_.push_back(frame(*address, file));
      names_.clear();
    }
    return true;
  }

  model::FrameId frame(uint64_t address, std::string_view file) {
    bool is_new = false;
    model::FrameId id =
        builder_.frame({module_by_name(builder_, file, "", address), address}, &is_new);
    if (is_new && !names_.back().function.empty()) builder_.name(id, names_);
    return id;
  }

  void finish_sample() {
    if (!head_) return;
    ++found_;
    model::StackId stack;
    for (size_t i = frames_.size(); i-- > 0;) stack = builder_.push(stack, frames_[i]);
    frames_.clear();
    names_.clear();
    Who who;
    who.pid = head_->pid;
    who.tid = head_->tid;
    who.process = who.thread = stored(head_->comm);
    if (is_wait(head_->event)) {
      add_wait(builder_.thread(who), stack);
    } else if (head_->event == chosen_.name) {
      add_sample(builder_.thread(who), stack);
    } else {
      ++left_out_;
    }
    head_.reset();
  }

  void add_sample(model::ThreadId thread, model::StackId stack) {
    int64_t weight = clock_ && head_->period > 0 ? head_->period
                     : options_.period_ns > 0    ? options_.period_ns
                     : head_->period > 0         ? head_->period
                                                 : 1;
    weight = std::min<int64_t>(weight, kMostNsOfOne);
    if (!head_->time) {
      builder_.untimed_samples(thread, stack, 1, weight);
      return;
    }
    auto cpu = static_cast<uint16_t>(head_->cpu < 0 ? 0 : head_->cpu);
    builder_.sample({*head_->time, thread, stack, weight, cpu});
  }

  void add_wait(model::ThreadId thread, model::StackId stack) {
    model::Wait wait;
    wait.thread = thread;
    wait.stack = stack;
    wait.start = head_->time.value_or(0);
    wait.duration_ns = std::min<int64_t>(head_->period, kMostNsOfOne);
    wait.set(model::WaitFlag::runqueue_known);
    if (head_->event == "runqueue") {
      wait.runqueue_ns = wait.duration_ns;
      wait.set(model::WaitFlag::preempted);
    }
    if (wait.duration_ns <= 0) return;
    if (chosen_.rank == Rank::none) {
      builder_.wait_in_row(wait);
    } else {
      builder_.wait(wait);
    }
  }

  const Input& input_;
  const ReadOptions& options_;
  RunBuilder& builder_;
  std::optional<Head> head_;
  std::vector<model::FrameId> frames_;  // leaf first
  std::vector<model::Location> names_;  // of the frame at hand, innermost first
  const ChosenEvent chosen_;
  const bool clock_;
  uint64_t found_ = 0, left_out_ = 0;
};

}  // namespace

bool looks_like_perf_script(std::string_view bytes) {
  Lines lines(bytes.substr(0, 1 << 16));
  bool head = false;
  for (std::string_view line; lines.next(line);) {
    if (line.starts_with('#') || (!head && trimmed(line).empty())) continue;
    if (head) return is_indented(line);
    auto parsed = is_indented(line) ? std::nullopt : parse_head(line);
    if (!parsed) return false;
    if (parsed->time) return true;
    head = true;  // without a time only a frame below it tells
  }
  return false;
}

Result<void> read_perf_script(const Input& input, const ReadOptions& options, RunBuilder& builder) {
  return ScriptReader(input, options, builder).read();
}

}  // namespace assay::formats
