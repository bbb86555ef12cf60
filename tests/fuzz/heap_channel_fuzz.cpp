// Fuzz entry of the heap channel's reader: any bytes as header and ring, as a hostile target may
// leave them.
//
// With clang: -fsanitize=fuzzer,address over this file and assay_capture. Without:
// replay_driver.cpp runs it on a corpus and on seeded mutations of it, as a normal test.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "capture/heap/heap_channel.h"
#include "capture/heap/testing/fake_heap_writer.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using assay::capture::HeapRecord;
using assay::capture::HeapRing;
using assay::capture::fake::HeapWriter;

constexpr size_t kHeadBytes = sizeof(assay::inject::HeapChannelHeader);
constexpr size_t kRingPart = 4096;  // of the ring: mutations of more would rarely matter

}  // namespace

// The header's bytes, then the ring's first ones.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static HeapWriter writer;
  auto memory = writer.memory();
  std::fill(memory.begin(), memory.end(), std::byte{0});
  size_t head = std::min(size, kHeadBytes);
  std::memcpy(memory.data(), data, head);
  std::memcpy(writer.ring(), data + head, std::min(size - head, kRingPart));
  HeapRing ring(memory, HeapWriter::kRingBytes);
  static volatile uint64_t sink;
  size_t seen = 0;
  for (int round = 0; round < 3; ++round) {
    ring.drain(100'000, [&](const HeapRecord& record) {
      ++seen;
      for (uint64_t pc : record.pcs) sink = sink + pc;
      if (record.pcs.size() > assay::inject::kMaxHeapFrames) std::abort();
      if (static_cast<int>(record.function) >= assay::model::kHeapFunctionCount) std::abort();
    });
  }
  // Each record takes at least its header of the ring.
  if (seen > 3 * HeapWriter::kRingBytes / 8) std::abort();
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> corpus;
  for (int records : {0, 1, 5, 20}) {
    HeapWriter writer;
    for (int i = 0; i < records; ++i) {
      std::vector<uint64_t> pcs(static_cast<size_t>(i), 0x4000u + static_cast<unsigned>(i));
      writer.alloc(static_cast<uint64_t>(i), 64u * static_cast<unsigned>(i), 100, pcs);
      if (i % 2 == 0) writer.free(static_cast<uint64_t>(i), 64u * static_cast<unsigned>(i));
    }
    auto* bytes = reinterpret_cast<const uint8_t*>(writer.memory().data());
    auto* ring = reinterpret_cast<const uint8_t*>(writer.ring());
    std::vector<uint8_t> input(bytes, bytes + kHeadBytes);
    input.insert(input.end(), ring, ring + kRingPart);
    corpus.push_back(std::move(input));
  }
  return corpus;
}
