#include "formats/gperftools/read_gperftools.h"

#include <cmath>
#include <cstring>

#include "formats/gperftools/maps.h"

namespace assay::formats {
namespace {

constexpr size_t kWord = 8;

uint64_t word_at(std::string_view bytes, size_t index) {
  uint64_t word = 0;
  if ((index + 1) * kWord <= bytes.size()) {
    std::memcpy(&word, bytes.data() + index * kWord, kWord);
  }
  return word;
}

model::ThreadId thread_of(RunBuilder& builder, const ImportedMaps& maps) {
  Who who;
  who.exe = maps.main_program();
  return builder.thread(who);
}

struct CpuRecord {
  uint64_t count = 0;
  size_t first = 0, depth = 0;  // words
};

struct HeapRow {
  int64_t objects = 0, bytes = 0;
  std::string_view addresses;
};

// "  1: 2 [ 3: 4] @ 0x1 0x2"; the header has the same form after "heap profile:".
std::optional<HeapRow> parse_heap_row(std::string_view line) {
  size_t at = line.find('@'), colon = line.find(':'), bracket = line.find('[');
  if (at == line.npos || colon == line.npos || colon > at) return std::nullopt;
  auto objects = parse_number<int64_t>(trimmed(line.substr(0, colon)));
  auto bytes = parse_number<int64_t>(
      trimmed(line.substr(colon + 1, std::min(bracket, at) - std::min(colon + 1, at))));
  if (!objects || !bytes) return std::nullopt;
  return HeapRow{*objects, *bytes, trimmed(line.substr(at + 1))};
}

// How many bytes a row of a sampled profile stands for.
double scale_of(const HeapRow& row, double rate) {
  if (rate <= 1 || row.objects <= 0 || row.bytes <= 0) return 1;
  double average = static_cast<double>(row.bytes) / static_cast<double>(row.objects);
  return 1 / (1 - std::exp(-average / rate));
}

}  // namespace

bool looks_like_gperftools_cpu(std::string_view bytes) {
  return bytes.size() >= 5 * kWord && word_at(bytes, 0) == 0 && word_at(bytes, 1) >= 3 &&
         word_at(bytes, 1) < 1000 && word_at(bytes, 2) == 0 && word_at(bytes, 4) == 0;
}

bool looks_like_gperftools_heap(std::string_view bytes) {
  return bytes.starts_with("heap profile:");
}

Result<void> read_gperftools_cpu(const Input& input, RunBuilder& builder) {
  std::string_view bytes = input.bytes();
  if (!looks_like_gperftools_cpu(bytes)) return input.fail_at(0, "no gperftools CPU profile");
  size_t words = bytes.size() / kWord, at = 2 + word_at(bytes, 1);
  uint64_t period_us = word_at(bytes, 3);
  if (period_us > 1'000'000'000) return input.fail_at(3 * kWord, "an impossible period");
  std::vector<CpuRecord> records;
  while (true) {
    if (at + 2 > words) return input.fail_at(bytes.size(), "the profile ends without its trailer");
    CpuRecord record{word_at(bytes, at), at + 2, word_at(bytes, at + 1)};
    if (record.depth > words - at - 2)
      return input.fail_at(at * kWord, "a record that is too long");
    at += 2 + record.depth;
    if (record.count == 0 && record.depth == 1 && word_at(bytes, record.first) == 0) break;
    if (record.count > UINT32_MAX) return input.fail_at((at - 2) * kWord, "an impossible count");
    records.push_back(record);
  }
  ImportedMaps maps(bytes.substr(at * kWord));
  model::ThreadId thread = thread_of(builder, maps);
  auto period_ns = static_cast<int64_t>(period_us) * kNsPerUs;
  for (const CpuRecord& record : records) {
    model::StackId stack;
    for (size_t i = std::min(record.depth, kDeepestStack); i-- > 0;) {
      uint64_t pc = word_at(bytes, record.first + i);
      stack = builder.push(stack, maps.frame(builder, i == 0 || pc == 0 ? pc : pc - 1));
    }
    auto count = static_cast<int64_t>(record.count);
    builder.untimed_samples(thread, stack, record.count, count * std::max<int64_t>(1, period_ns));
  }
  builder.set_event("cpu", period_ns);
  return {};
}

Result<void> read_gperftools_heap(const Input& input, RunBuilder& builder) {
  std::string_view bytes = input.bytes();
  size_t maps_at = bytes.find("MAPPED_LIBRARIES:");
  ImportedMaps maps(maps_at == bytes.npos ? "" : bytes.substr(maps_at));
  Lines lines(bytes.substr(0, maps_at));
  std::string_view line;
  lines.next(line);
  constexpr std::string_view kHead = "heap profile:";
  auto head = line.starts_with(kHead) ? parse_heap_row(line.substr(kHead.size())) : std::nullopt;
  if (!head) return input.fail_at(0, "no heap profile's header");
  double rate = 1;
  size_t slash = head->addresses.find('/');
  if (head->addresses.starts_with("heap_v2") && slash != head->addresses.npos) {
    rate = parse_number<double>(head->addresses.substr(slash + 1)).value_or(1);
  }
  model::ThreadId thread = thread_of(builder, maps);
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    auto row = parse_heap_row(line);
    if (!row || row->objects < 0 || row->bytes < 0) {
      return input.fail_at(lines.offset(), "a line that is no row of a heap profile");
    }
    std::vector<uint64_t> pcs;
    for (std::string_view rest = row->addresses; !rest.empty() && pcs.size() < kDeepestStack;) {
      size_t space = std::min(rest.find(' '), rest.size());
      std::string_view word = rest.substr(0, space);
      if (word.starts_with("0x")) word.remove_prefix(2);
      auto pc = parse_number<uint64_t>(word, 16);
      if (!pc) return input.fail_at(lines.offset(), "a row with a bad address");
      pcs.push_back(*pc);
      rest = trimmed(rest.substr(space));
    }
    model::StackId stack;
    for (size_t i = pcs.size(); i-- > 0;) {
      stack = builder.push(stack, maps.frame(builder, pcs[i] == 0 ? 0 : pcs[i] - 1));
    }
    double in_use = std::min(static_cast<double>(row->bytes) * scale_of(*row, rate), 4e18);
    if (in_use > 0) builder.untimed_samples(thread, stack, 1, std::llround(in_use));
  }
  builder.set_event("bytes", 0);
  builder.fact("unit", "bytes");
  builder.note("unit",
               "the imported profile counts bytes in use, not time: where this run says ns, "
               "read bytes; each distinct stack counts as one sample");
  return {};
}

}  // namespace assay::formats
