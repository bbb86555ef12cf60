#include "analysis/compare/functions/comparable_name.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "model/code/code_origin.h"

namespace assay::analysis {
namespace {

constexpr std::array<std::string_view, 10> kCloneWords{
    "isra", "constprop", "part", "cold", "lto_priv", "llvm", "localalias", "clone", "warm", "hot"};

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Takes one ".word" or ".number" off the end, when a compiler may have put it there.
bool drop_last_part(std::string_view& name) {
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  std::string_view part = name.substr(dot + 1);
  bool numbered = is_digits(part) && name.substr(0, dot).find('.') != std::string_view::npos;
  if (!numbered && std::ranges::find(kCloneWords, part) == kCloneWords.end()) return false;
  name = name.substr(0, dot);
  return true;
}

bool drop_rust_hash(std::string_view& name) {
  constexpr size_t kHash = 16;
  if (name.size() < kHash + 3) return false;
  std::string_view hash = name.substr(name.size() - kHash);
  bool hex =
      std::all_of(hash.begin(), hash.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!hex || name.substr(name.size() - kHash - 3, 3) != "::h") return false;
  name = name.substr(0, name.size() - kHash - 3);
  return true;
}

}  // namespace

std::string comparable_name(std::string_view name) {
  // "f(int) [clone .isra.0]", as some demanglers put it.
  if (size_t clone = name.find(" [clone ."); clone != std::string_view::npos)
    name = name.substr(0, clone);
  drop_rust_hash(name);
  while (drop_last_part(name)) {
  }
  return std::string(name);
}

std::string comparable_module(std::string_view module) {
  if (module == "[unknown]" || module == "?") return "";
  size_t suffix = model::library_suffix_at(module);
  if (suffix == std::string_view::npos) return std::string(module);
  std::string_view stem = module.substr(0, suffix);
  size_t dash = stem.rfind('-');
  bool versioned = dash != std::string_view::npos && dash + 1 < stem.size() &&
                   stem.find_first_not_of("0123456789.", dash + 1) == std::string_view::npos;
  return std::string(versioned ? stem.substr(0, dash) : stem) + ".so";
}

}  // namespace assay::analysis
