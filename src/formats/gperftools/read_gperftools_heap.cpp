// Heap profiles as text: gperftools' and jemalloc's files, and what Go and libassay answer to
// heap?debug=1.
#include <algorithm>
#include <cmath>
#include <map>

#include "formats/gperftools/maps.h"
#include "formats/gperftools/read_gperftools.h"

namespace assay::formats {
namespace {

constexpr std::string_view kHead = "heap profile:", kJemallocHead = "heap_v2/";
constexpr size_t kMostUnnamed = 64;  // addresses in a row that have no name
constexpr size_t kMostInlined = 256;

struct Amount {
  int64_t objects = 0, bytes = 0;
};

struct HeapRow {
  Amount live, allocated;
  std::string_view rest;  // behind the @
};

// "1: 2", with spaces anywhere around the numbers.
std::optional<Amount> parse_amount(std::string_view text) {
  size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  auto objects = parse_number<int64_t>(trimmed(text.substr(0, colon)));
  auto bytes = parse_number<int64_t>(trimmed(text.substr(colon + 1)));
  if (!objects || !bytes || *objects < 0 || *bytes < 0) return std::nullopt;
  return Amount{*objects, *bytes};
}

// "1: 2 [ 3: 4]": what lives, and all that was allocated. Some leave the part in brackets out.
std::optional<HeapRow> parse_amounts(std::string_view numbers) {
  HeapRow row;
  size_t open = numbers.find('['), close = numbers.find(']');
  auto live = parse_amount(numbers.substr(0, open));
  if (!live) return std::nullopt;
  row.live = *live;
  if (open == numbers.npos) return row;
  if (close == numbers.npos || close < open) return std::nullopt;
  auto allocated = parse_amount(numbers.substr(open + 1, close - open - 1));
  if (!allocated) return std::nullopt;
  row.allocated = *allocated;
  return row;
}

// "  1: 2 [ 3: 4] @ 0x1 0x2"; the header has the same form after "heap profile:".
std::optional<HeapRow> parse_row(std::string_view line) {
  size_t at = line.find('@');
  if (at == line.npos) return std::nullopt;
  auto row = parse_amounts(line.substr(0, at));
  if (row) row->rest = trimmed(line.substr(at + 1));
  return row;
}

// Mean bytes between the samples of a profile of this kind, as its header has it; 0: it is scaled
// already, or everything was counted.
int64_t rate_of(std::string_view kind) {
  size_t slash = kind.find('/');
  if (slash == kind.npos) return 0;
  int64_t rate = parse_number<int64_t>(trimmed(kind.substr(slash + 1))).value_or(0);
  kind = kind.substr(0, slash);
  if (kind == "heap") return rate / 2;  // the oldest form, which Go still writes, doubles it
  return kind == "heap_v2" || kind == "heapz_v2" ? rate : 0;
}

// What the samples of one line stand for, by their mean size, as pprof computes and rounds it.
Amount scaled(const Amount& sampled, int64_t rate) {
  constexpr double kMost = 4e18;
  if (rate <= 1 || sampled.objects == 0 || sampled.bytes == 0) return sampled;
  auto objects = static_cast<double>(sampled.objects), bytes = static_cast<double>(sampled.bytes);
  double scale = 1 / (1 - std::exp(-bytes / objects / static_cast<double>(rate)));
  return {static_cast<int64_t>(std::min(objects * scale, kMost)),
          static_cast<int64_t>(std::min(bytes * scale, kMost))};
}

// "#\t0x47a3e0\tmain.keep+0x20\t/src/main.go:12" of Go; libassay has the module's file last.
struct NameLine {
  uint64_t pc = 0;
  model::Location name;
  std::string_view module;
};

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    size_t tab = std::min(line.find('\t'), line.size());
    if (tab > 0) fields.push_back(line.substr(0, tab));
    line.remove_prefix(std::min(tab + 1, line.size()));
  }
  return fields;
}

std::optional<NameLine> parse_name(std::string_view line) {
  std::vector<std::string_view> fields = fields_of(line.substr(1));
  if (fields.size() < 2 || !fields[0].starts_with("0x") || fields[1] == "?") return std::nullopt;
  auto pc = parse_number<uint64_t>(fields[0].substr(2), 16);
  if (!pc) return std::nullopt;
  NameLine named;
  named.pc = *pc;
  named.name.function = stored(fields[1].substr(0, fields[1].rfind("+0x")));
  if (fields.size() < 3) return named;
  size_t colon = fields[2].rfind(':');
  auto number =
      colon == fields[2].npos ? std::nullopt : parse_number<uint32_t>(fields[2].substr(colon + 1));
  if (number) {
    named.name.file = stored(fields[2].substr(0, colon));
    named.name.line = *number;
  } else {
    named.module = fields[2];
  }
  return named;
}

class HeapText {
 public:
  HeapText(const Input& input, RunBuilder& builder)
      : input_(input),
        maps_at_(std::min(input.bytes().find("MAPPED_LIBRARIES:"), input.bytes().size())),
        maps_(input.bytes().substr(maps_at_)),
        builder_(builder) {}

  Result<void> read() {
    Lines lines(input_.bytes().substr(0, maps_at_));
    std::string_view line;
    lines.next(line);
    bool by_jemalloc = line.starts_with(kJemallocHead);
    auto head =
        line.starts_with(kHead) ? parse_row(line.substr(kHead.size())) : std::optional<HeapRow>();
    if (!head && !by_jemalloc) return input_.fail_at(0, "no heap profile's header");
    std::string_view kind = head ? head->rest : line;
    builder_.begin_heap();
    if (head) told_ = *head;
    rate_ = rate_of(kind);
    Who who;
    who.exe = maps_.main_program();
    thread_ = builder_.thread(who);
    while (lines.next(line)) {
      if (trimmed(line).empty()) continue;
      auto done = by_jemalloc ? take_jemalloc(line, lines.offset()) : take(line, lines.offset());
      if (!done) return done;
    }
    add_row();
    maps_.store(builder_, thread_);
    if (!knows_allocated_) builder_.heap_lacks_freed();
    if (kind.starts_with("growth")) note_growth();
    if (seen_.live.bytes < told_.live.bytes || seen_.allocated.bytes < told_.allocated.bytes) {
      note_missing();
    }
    return {};
  }

 private:
  struct Pc {
    uint64_t address = 0;  // of the call
    std::vector<model::Location> names;
    std::string_view module;
  };

  Result<void> take(std::string_view line, size_t offset) {
    if (line.starts_with('#')) {
      take_name(line);
      return {};
    }
    auto row = parse_row(line);
    if (!row) return input_.fail_at(offset, "a line that is no row of a heap profile");
    add_row();
    row_ = *row;
    has_row_ = true;
    return take_addresses(row->rest, offset);
  }

  // A stack stands before its amounts: "@ 0x1 0x2", then "t*: 1: 2 [3: 4]" of all threads and lines
  // of single ones. Amounts before the first stack are those of the whole program.
  Result<void> take_jemalloc(std::string_view line, size_t offset) {
    line = trimmed(line);
    if (line.starts_with('@')) {
      add_row();
      row_ = {};
      has_row_ = true;
      return take_addresses(trimmed(line.substr(1)), offset);
    }
    size_t colon = line.find(':');
    auto row = line.starts_with('t') && colon != line.npos ? parse_amounts(line.substr(colon + 1))
                                                           : std::nullopt;
    if (!row) return input_.fail_at(offset, "a line that is no row of a heap profile");
    if (line.starts_with("t*")) (has_row_ ? row_ : told_) = *row;
    return {};
  }

  Result<void> take_addresses(std::string_view rest, size_t offset) {
    while (!rest.empty() && pcs_.size() < kDeepestStack) {
      size_t space = std::min(rest.find(' '), rest.size());
      std::string_view word = rest.substr(0, space);
      if (word.starts_with("0x")) word.remove_prefix(2);
      auto pc = parse_number<uint64_t>(word, 16);
      if (!pc) return input_.fail_at(offset, "a row with a bad address");
      pcs_.push_back({*pc == 0 ? 0 : *pc - 1, {}, {}});
      rest = trimmed(rest.substr(space));
    }
    return {};
  }

  // Names follow their row from the leaf on; several of one address are inlined into each other,
  // the innermost first. Some tell the return address, others the call's.
  void take_name(std::string_view line) {
    auto named = parse_name(line);
    if (!named) return;
    for (size_t i = named_; i < std::min(pcs_.size(), named_ + kMostUnnamed); ++i) {
      if (named->pc != pcs_[i].address && named->pc != pcs_[i].address + 1) continue;
      named_ = i;
      has_names_ = true;
      std::vector<model::Location>& names = pcs_[i].names;
      if (names.size() >= kMostInlined) return;
      if (!names.empty()) names.back().inlined = true;
      names.push_back(std::move(named->name));
      pcs_[i].module = named->module;
      return;
    }
  }

  void add_row() {
    if (has_row_) {
      model::StackId stack;
      for (size_t i = pcs_.size(); i-- > 0;) {
        if (auto frame = frame_of(pcs_[i])) stack = builder_.push(stack, *frame);
      }
      auto add = [](int64_t& sum, int64_t value) {
        if (__builtin_add_overflow(sum, value, &sum)) sum = INT64_MAX;
      };
      add(seen_.live.bytes, row_.live.bytes);
      add(seen_.allocated.bytes, row_.allocated.bytes);
      Amount live = scaled(row_.live, rate_), allocated = scaled(row_.allocated, rate_);
      knows_allocated_ = knows_allocated_ || allocated.objects > 0 || allocated.bytes > 0;
      builder_.heap_sum(
          {thread_, stack, live.bytes, live.objects, allocated.bytes, allocated.objects, rate_});
    }
    has_row_ = has_names_ = false;
    named_ = 0;
    pcs_.clear();
  }

  std::optional<model::FrameId> frame_of(const Pc& pc) {
    if (maps_.covers(pc.address)) {
      model::FrameId frame = maps_.frame(builder_, pc.address);
      if (!pc.names.empty() && !builder_.is_named(frame)) builder_.name(frame, pc.names);
      return frame;
    }
    // Without maps an address cannot be looked up: only the name is known.
    if (!pc.names.empty())
      return builder_.named_frame(module_by_name(builder_, pc.module, "", 0), pc.names);
    // Go names no function of its allocator, and none below a goroutine's first.
    if (has_names_) return std::nullopt;
    return maps_.frame(builder_, pc.address);
  }

  void note_missing() {
    builder_.note(
        "cut", fmt::format("the imported profile's rows have less than its header states ({} of {} "
                           "bytes live, {} of {} allocated): it may have been cut",
                           seen_.live.bytes, told_.live.bytes, seen_.allocated.bytes,
                           told_.allocated.bytes));
  }

  void note_growth() {
    builder_.note("heap",
                  "the imported profile tells where the allocator took memory from the system, not "
                  "what the program holds: where this run says live, read taken");
  }

  const Input& input_;
  size_t maps_at_;
  ImportedMaps maps_;
  RunBuilder& builder_;
  int64_t rate_ = 0;
  model::ThreadId thread_;
  bool knows_allocated_ = false;
  HeapRow told_, seen_;  // sums by the header and of the rows; unscaled
  // The row at hand, until it is known that no more names follow.
  HeapRow row_;
  std::vector<Pc> pcs_;  // leaf first
  size_t named_ = 0;     // where the last name belonged
  bool has_row_ = false, has_names_ = false;
};

}  // namespace

bool looks_like_gperftools_heap(std::string_view bytes) {
  return bytes.starts_with(kHead) || bytes.starts_with(kJemallocHead);
}

Result<void> read_gperftools_heap(const Input& input, RunBuilder& builder) {
  return HeapText(input, builder).read();
}

}  // namespace assay::formats
