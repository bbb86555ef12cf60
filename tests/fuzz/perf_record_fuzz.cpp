// Fuzz entry of the perf record parser: any bytes, unchanged and as a record of the right size.
//
// With clang: -fsanitize=fuzzer,address over this file and assay_capture. Without:
// replay_driver.cpp runs it on a corpus and on seeded mutations of it, as a normal test.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "capture/perf/fake_perf_records.h"
#include "capture/perf/record.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace assay::capture;

class KindsByNumber final : public EventIds {
 public:
  EventKind kind_of(uint64_t id) const override { return static_cast<EventKind>(id % 5); }
};

uint64_t sum(const auto& range) {
  uint64_t total = 0;
  for (auto value : range) total += static_cast<uint64_t>(value);
  return total;
}

// Reads all that the record points at, so that a sanitizer sees a span that is too long.
uint64_t touch(const Record& record) {
  if (auto* sample = std::get_if<SampleRecord>(&record.body)) {
    return sum(sample->kernel_chain) + sum(sample->user_chain) + sum(sample->stack) +
           sum(sample->raw);
  }
  if (auto* mapping = std::get_if<MmapRecord>(&record.body))
    return sum(mapping->build_id) + sum(mapping->path);
  if (auto* comm = std::get_if<CommRecord>(&record.body)) return sum(comm->name);
  return 0;
}

void check(const fake::Bytes& bytes) {
  static volatile uint64_t sink;  // keeps the reads
  auto time = record_time(bytes);
  auto record = parse_record(bytes, KindsByNumber());
  if (record) {
    if (!time || *time != record->head.time) std::abort();
    sink = sink + touch(*record);
  }
  auto cut = find_stack(bytes);
  if (cut && cut->prefix_bytes + 8 + cut->copy_bytes > bytes.size()) std::abort();
  // A stack sample has its stack where find_stack says, cut to whole words.
  auto* sample = record ? std::get_if<SampleRecord>(&record->body) : nullptr;
  if (sample != nullptr &&
      (sample->kind == EventKind::on_cpu || sample->kind == EventKind::off_cpu)) {
    if (!cut || cut->copy_bytes != (sample->stack.size() & ~size_t{7})) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A vector of its own: aligned as in a ring, and ending where the record ends.
  auto bytes = std::as_bytes(std::span(data, size));
  check(fake::Bytes(bytes.begin(), bytes.end()));
  size = std::min<size_t>(size, UINT16_MAX) & ~size_t{7};
  if (size < sizeof(perf_event_header)) return 0;
  fake::Bytes right_size(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
  fake::set_size(right_size, size);
  check(right_size);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  const RecordHead head{.time = 1'000'000, .pid = 10, .tid = 11, .cpu = 1};
  const ForkRecord task{.pid = 10, .parent_pid = 9, .tid = 12, .parent_tid = 11};
  constexpr uint64_t kOnCpu = 1, kOffCpu = 2, kWaking = 3;  // as KindsByNumber reads them
  const std::vector<uint8_t> build_id(20, 0xab);
  std::vector<std::vector<uint8_t>> corpus;
  for (const fake::Bytes& record :
       {fake::usual_sample(kOnCpu, head, 64, 40), fake::usual_sample(kOffCpu, head, 0, 0),
        fake::waking_sample(kWaking, head, fake::stack_pattern(36)),
        fake::switch_record(head, true), fake::cpu_wide_switch_record(head, false, 12),
        fake::mmap2_record(head, {1 << 20, 4096, 0, 5, build_id, "/lib/a"}),
        fake::comm_record(head, 10, 12, "worker", false), fake::fork_record(head, task),
        fake::exit_record(head, task), fake::lost_record(head, 3),
        fake::lost_samples_record(head, 4), fake::throttle_record(head, true)}) {
    auto* begin = reinterpret_cast<const uint8_t*>(record.data());
    corpus.emplace_back(begin, begin + record.size());
  }
  return corpus;
}
