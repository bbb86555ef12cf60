// Fuzz entry of the run file's block decoder: any bytes, as a blob and as its decompressed
// contents.
//
// With clang: -fsanitize=fuzzer,address over this file and assay_run. Without: replay_driver.cpp
// runs it on a corpus and on seeded mutations of it, as a normal test.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "run/blocks/block_codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using assay::model::HeapAlloc;
using assay::model::HeapFree;
using assay::model::Sample;
using assay::model::Wait;
using assay::run::totals_of;

// Decoded rows must encode again to a block with the same rows: a decoder that accepts rows the
// encoder cannot hold, or that loses some, is wrong.
template <class Row>
void check(assay::Result<void> decoded, const std::vector<Row>& rows) {
  if (!decoded) return;
  if (rows.size() > assay::run::kMaxBlockRows) std::abort();
  static assay::run::BlockEncoder encoder;
  static assay::run::BlockDecoder decoder;
  auto blob = encoder.encode(std::span<const Row>(rows));
  std::vector<Row> again;
  if (!blob || !decoder.decode(*blob, again)) std::abort();
  if (totals_of(std::span<const Row>(rows)) != totals_of(std::span<const Row>(again))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static assay::run::BlockDecoder decoder;
  std::span<const uint8_t> bytes(data, size);
  std::vector<Sample> samples;
  std::vector<Wait> waits;
  std::vector<HeapAlloc> allocs;
  std::vector<HeapFree> frees;
  check(decoder.decode(bytes, allocs), allocs);
  check(decoder.decode(bytes, frees), frees);
  check(assay::run::BlockDecoder::decode_raw(bytes, allocs), allocs);
  check(assay::run::BlockDecoder::decode_raw(bytes, frees), frees);
  check(decoder.decode(bytes, samples), samples);
  check(decoder.decode(bytes, waits), waits);
  check(assay::run::BlockDecoder::decode_raw(bytes, samples), samples);
  check(assay::run::BlockDecoder::decode_raw(bytes, waits), waits);
  return 0;
}

// Blocks of every kind, compressed and raw, small enough that mutations reach every part.
std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> corpus;
  assay::run::BlockEncoder encoder;
  assay::run::BlockDecoder decoder;
  auto keep = [&](assay::Result<std::span<const uint8_t>> blob) {
    if (!blob) std::abort();
    corpus.emplace_back(blob->begin(), blob->end());
    auto raw = decoder.decompress(corpus.back());
    if (!raw) std::abort();
    corpus.emplace_back(raw->begin(), raw->end());
  };
  for (uint32_t count : {0u, 1u, 7u, 60u}) {
    std::vector<Sample> samples;
    std::vector<Wait> waits;
    std::vector<HeapAlloc> allocs;
    std::vector<HeapFree> frees;
    for (uint32_t i = 0; i < count; ++i) {
      samples.push_back({1'000'000 + i * 977, {i / 20}, {i % 5}, 10'101'010, 3});
      Wait wait;
      wait.start = 1'000'000 + i * 977;
      wait.duration_ns = i * 13;
      wait.runqueue_ns = i % 3 == 0 ? wait.duration_ns : i % 3;
      if (wait.runqueue_ns > wait.duration_ns) wait.runqueue_ns = 0;
      wait.thread = {i / 20};
      wait.stack = {i % 7};
      wait.arg = i % 4 * 0x10000000;
      waits.push_back(wait);
      allocs.push_back({1'000'000 + i * 977, {i / 20}, {i % 7}, i, 16u << i % 12, 524'288, {}});
      frees.push_back({1'000'000 + i * 1977, {i / 20}, i});
    }
    keep(encoder.encode(std::span<const Sample>(samples)));
    keep(encoder.encode(std::span<const Wait>(waits)));
    keep(encoder.encode(std::span<const HeapAlloc>(allocs)));
    keep(encoder.encode(std::span<const HeapFree>(frees)));
  }
  return corpus;
}
