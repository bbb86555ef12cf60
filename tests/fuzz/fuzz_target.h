// What every fuzz target of this folder defines: libFuzzer's entry and the corpus it starts from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Valid inputs, made by the target itself so that they follow the format as it changes.
std::vector<std::vector<uint8_t>> fuzz_corpus();
