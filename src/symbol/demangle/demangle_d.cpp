// D names: the qualified name is shown, its type is left out, as _D3std5stdio7writelnFZv is
// "std.stdio.writeln". Back references and templates' arguments beyond that are not expanded: such
// a name stays mangled.
#include <charconv>

#include "symbol/demangle/demangle.h"

namespace assay::symbol {

std::string demangle_d(std::string_view name) {
  if (name == "_Dmain") return "D main";
  if (!name.starts_with("_D") || name.size() < 4) return "";
  std::string_view rest = name.substr(2);
  std::string out;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
    size_t size = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc()) return "";
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (size == 0 || size > rest.size()) return "";
    std::string_view part = rest.substr(0, size);
    if (part.starts_with("__T") || part.starts_with("__S")) return "";
    rest.remove_prefix(size);
    if (!out.empty()) out += '.';
    if (part == "__ctor") part = "this";
    if (part == "__dtor") part = "~this";
    out += part;
  }
  // What follows must be a type or the end of a special symbol; anything else was no D name.
  if (out.empty() || rest.starts_with("Q") || rest.starts_with("_")) return "";
  return out;
}

}  // namespace assay::symbol
