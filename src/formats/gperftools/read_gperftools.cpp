#include "formats/gperftools/read_gperftools.h"

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

}  // namespace

bool looks_like_gperftools_cpu(std::string_view bytes) {
  return bytes.size() >= 5 * kWord && word_at(bytes, 0) == 0 && word_at(bytes, 1) >= 3 &&
         word_at(bytes, 1) < 1000 && word_at(bytes, 2) == 0 && word_at(bytes, 4) == 0;
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

}  // namespace assay::formats
