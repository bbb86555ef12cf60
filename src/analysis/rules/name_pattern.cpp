#include "analysis/rules/name_pattern.h"

#include <algorithm>

namespace assay::analysis {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

std::string_view without_suffix(std::string_view name) {
  for (std::string_view end : {"@", " [clone", "[abi:"}) {
    size_t at = name.find(end);
    if (at != name.npos && at > 0) name = name.substr(0, at);
  }
  // The compiler's own copies: ".cold", ".part.0"; a Go function may be called main.partition.
  for (std::string_view end : {".constprop", ".isra", ".part", ".cold", ".llvm"}) {
    size_t at = name.find(end), after = at + end.size();
    if (at == name.npos || at == 0) continue;
    if (after == name.size() || name[after] == '.') name = name.substr(0, at);
  }
  return name;
}

bool after_operator(std::string_view name, size_t at) {
  constexpr std::string_view kOperator = "operator";
  return at >= kOperator.size() &&
         name.substr(at - kOperator.size(), kOperator.size()) == kOperator;
}

}  // namespace

std::string_view bare_name(std::string_view name) {
  size_t begin = 0, end = name.size();
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (c == '<' && !after_operator(name, i)) {
      ++depth;
    } else if (c == '>' && depth > 0 && (i == 0 || name[i - 1] != '-')) {
      --depth;
    } else if (depth == 0 && c == '(' && !after_operator(name, i)) {
      end = i;
      break;
    } else if (depth == 0 && c == ' ' && !after_operator(name, i) &&
               !name.substr(i).starts_with(" [clone")) {
      begin = i + 1;  // what stood before was the return type
    }
  }
  if (begin >= end) return without_suffix(name);
  return without_suffix(name.substr(begin, end - begin));
}

NamePattern::NamePattern(std::string_view text) : text_(text) {
  size_t begin = 0;
  while (true) {
    size_t star = text.find('*', begin);
    parts_.emplace_back(text.substr(begin, star == text.npos ? star : star - begin));
    if (star == text.npos) return;
    begin = star + 1;
  }
}

bool NamePattern::matches(std::string_view name) const {
  if (exact()) return name == parts_.front();
  if (!name.starts_with(parts_.front())) return false;
  name.remove_prefix(parts_.front().size());
  if (!name.ends_with(parts_.back()) || name.size() < parts_.back().size()) return false;
  name.remove_suffix(parts_.back().size());
  for (size_t i = 1; i + 1 < parts_.size(); ++i) {
    size_t at = name.find(parts_[i]);
    if (at == name.npos) return false;
    name.remove_prefix(at + parts_[i].size());
  }
  return true;
}

}  // namespace assay::analysis
