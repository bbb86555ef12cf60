// Fuzz entry of the rule files: any text, as a rule file of the user's; and as a function's name.
//
// With clang: -fsanitize=fuzzer,address over this file and assay_analysis. Without:
// replay_driver.cpp runs it on the built-in rules and on seeded mutations of them, as a normal
// test.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "analysis/rules/name_pattern.h"
#include "analysis/rules/rule_set.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> out;
  // The first rules of each file: mutations of a short text reach more of the parser.
  for (const assay::analysis::RuleText& file : assay::analysis::built_in_rules()) {
    std::string_view text = file.text.substr(0, 1500);
    out.emplace_back(text.begin(), text.end());
  }
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  assay::analysis::RuleSet set;
  assay::analysis::read_rules({"fuzz.toml", text}, set);
  for (const assay::analysis::RuleError& error : set.errors) {
    if (error.text().empty()) std::abort();
  }
  std::string_view bare = assay::analysis::bare_name(text.substr(0, 300));
  if (bare.size() > text.size()) std::abort();
  (void)assay::analysis::NamePattern(text.substr(0, 40)).matches(bare);
  return 0;
}
