#include "analysis/rules/rule_set.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kLargestRuleFile = 4 << 20;

// Rule files below a directory, in an order that is the same everywhere.
std::vector<fs::path> rule_files(const std::string& directory, RuleSet& set) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->path().extension() == ".toml" && at->is_regular_file(ignored)) {
      files.push_back(at->path());
    }
  }
  if (error) set.errors.push_back({directory, 0, "", error.message()});
  std::sort(files.begin(), files.end());
  return files;
}

void read_directory(const std::string& directory, RuleSet& set) {
  for (const fs::path& path : rule_files(directory, set)) {
    std::error_code error;
    uintmax_t size = fs::file_size(path, error);
    std::ifstream in(path, std::ios::binary);
    if (error || !in || size > kLargestRuleFile) {
      set.errors.push_back({path.string(), 0, "",
                            error ? error.message()
                            : !in ? "cannot be read"
                                  : "is larger than a rule file may be"});
      continue;
    }
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::string name = path.string();
    read_rules({name, text}, set);
  }
}

// Keeps the first rule of every id: the user's come first.
template <class Rule, class Key>
void keep_first_of_each(std::vector<Rule>& rules, Key&& key) {
  std::set<std::string> seen;
  std::erase_if(rules, [&](const Rule& rule) { return !seen.insert(key(rule)).second; });
}

}  // namespace

std::string RuleError::text() const {
  std::string where = line > 0 ? fmt::format("{}:{}", file, line) : file;
  return rule.empty() ? fmt::format("{}: {}", where, what)
                      : fmt::format("{}: rule {}: {}", where, rule, what);
}

RuleSet load_rules(const std::vector<std::string>& directories) {
  RuleSet set;
  for (const std::string& directory : directories) read_directory(directory, set);
  for (const RuleText& file : built_in_rules()) read_rules(file, set);
  keep_first_of_each(set.categories,
                     [](const CategoryRule& r) { return r.breakdown + "/" + r.id; });
  keep_first_of_each(set.idle, [](const IdleRule& r) { return r.id; });
  keep_first_of_each(set.detectors, [](const DetectorRule& r) { return r.id; });
  return set;
}

const RuleSet& default_rules() {
  static const RuleSet rules = load_rules({});
  return rules;
}

}  // namespace assay::analysis
