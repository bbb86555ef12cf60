// Any text as a mangled name; the first byte chooses the language, so that each gets its share.
#include <string>

#include "model/display_name.h"
#include "symbol/demangle/demangle.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> out;
  for (std::string seed :
       {"\0St6vectorIiSaIiEE9push_backEOi", "14core3fmt9Formatter3pad17h0123456789abcdefE",
        "2NvXCsgStHSCytQ6I_7mycrateNtB2_3FooNtB2_3Bar3baz", "2INvC3foo3barFG_RL0_hEuE",
        "2NvC7mycrateu8gdel_5qa", "33std5stdio7writelnFAyaZv"}) {
    out.emplace_back(seed.begin(), seed.end());
  }
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static constexpr const char* kPrefixes[] = {"_Z", "_ZN", "_R", "_D"};
  std::string name =
      kPrefixes[data[0] % 4] + std::string(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string shown = assay::symbol::demangle(name);
  (void)assay::model::fold_name(shown);
  (void)assay::model::short_name(shown);
  return 0;
}
