// A fuzz target as a normal test: its corpus, earlier findings (FOUND/TARGET), then seeded
// mutations of the corpus, always the same ones.
//
//   TARGET [MUTATIONS [SEED]]     TARGET FILE…
// With files it replays those instead, as libFuzzer does with a crash it found.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace {

using Bytes = std::vector<uint8_t>;

// One of: flipped bit, random byte, interesting number, cut, repeated part, part of another input.
void mutate(Bytes& bytes, const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  if (bytes.empty()) bytes.push_back(0);
  size_t at = random() % bytes.size();
  switch (random() % 6) {
    case 0:
      bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
      break;
    case 1:
      bytes[at] = static_cast<uint8_t>(random());
      break;
    case 2: {
      static constexpr uint8_t kEdges[]{0, 1, 0x7f, 0x80, 0xff, 0xfe};
      size_t length = 1 + random() % 10;
      for (size_t i = at; i < bytes.size() && i < at + length; ++i) bytes[i] = kEdges[random() % 6];
      break;
    }
    case 3:
      bytes.resize(at);
      break;
    case 4: {
      Bytes part(
          bytes.begin() + static_cast<ptrdiff_t>(at),
          bytes.begin() + static_cast<ptrdiff_t>(std::min(at + random() % 32, bytes.size())));
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(random() % bytes.size()), part.begin(),
                   part.end());
      break;
    }
    default: {
      const Bytes& other = corpus[random() % corpus.size()];
      size_t length = other.empty() ? 0 : std::min(random() % 32, bytes.size() - at);
      for (size_t i = at; i < at + length; ++i) bytes[i] = other[i % other.size()];
    }
  }
}

void replay(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  Bytes bytes{std::istreambuf_iterator<char>(in), {}};
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// Inputs that once crashed, hung or used too much memory.
size_t replay_found(const std::filesystem::path& folder) {
  size_t count = 0;
  if (!std::filesystem::exists(folder)) return count;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    replay(entry.path());
    ++count;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::filesystem::exists(argv[1])) {
    for (int i = 1; i < argc; ++i) replay(argv[i]);
    return 0;
  }
  unsigned long mutations = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000;
  unsigned long seed = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  std::vector<Bytes> corpus = fuzz_corpus();
  if (corpus.empty()) return 1;
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  size_t found = replay_found(FOUND / std::filesystem::path(argv[0]).filename());
  std::mt19937_64 random(seed);
  for (unsigned long i = 0; i < mutations; ++i) {
    Bytes bytes = corpus[random() % corpus.size()];
    for (uint64_t steps = 1 + random() % 4; steps > 0; --steps) mutate(bytes, corpus, random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs, %zu found before and %lu mutations\n", corpus.size(), found, mutations);
  return 0;
}
