// Rust's legacy mangling: a C++ nested name whose last part is a hash, "17h" and 16 hex digits, and
// in which punctuation is written as $LT$, $u20$, "..".
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "symbol/demangle/demangle.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxBytes = 64 << 10;

bool is_hash(std::string_view part) {
  return part.size() == 17 && part[0] == 'h' &&
         part.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// The text of one "$…$" escape; nothing when it is none.
std::optional<std::string> escape_text(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"},
      {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}};
  for (auto [key, text] : kKnown) {
    if (name == key) return std::string(text);
  }
  if (name.size() < 2 || name.size() > 7 || name[0] != 'u') return std::nullopt;
  uint32_t code = 0;
  auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), code, 16);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (code < 0x20 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return std::nullopt;
  std::string out;
  append_utf8(out, code);
  return out;
}

void append_part(std::string& out, std::string_view part) {
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    if (part[0] == '.') {
      bool two = part.starts_with("..");
      out += two ? "::" : ".";
      part.remove_prefix(two ? 2 : 1);
      continue;
    }
    if (part[0] == '$') {
      size_t end = part.find('$', 1);
      auto text =
          end == std::string_view::npos ? std::nullopt : escape_text(part.substr(1, end - 1));
      if (!text) {
        out += part;  // not an escape after all: the rest is shown as it is
        return;
      }
      out += *text;
      part.remove_prefix(end + 1);
      continue;
    }
    size_t plain = std::min(part.find_first_of(".$"), part.size());
    out += part.substr(0, plain);
    part.remove_prefix(plain);
  }
}

}  // namespace

std::string demangle_rust_legacy(std::string_view name) {
  if (!name.starts_with("_ZN") || name.size() > kMaxBytes) return "";
  std::string_view rest = name.substr(3);
  std::string out;
  std::string_view last;
  bool first = true;
  while (!rest.empty() && rest[0] != 'E') {
    size_t size = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc()) return "";
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (size == 0 || size > rest.size()) return "";
    if (!last.empty()) {
      if (!first) out += "::";
      first = false;
      append_part(out, last);
    }
    last = rest.substr(0, size);
    rest.remove_prefix(size);
  }
  if (rest.empty() || !is_hash(last) || first) return "";
  // LLVM appends ".llvm.1234" to names it made global; other suffixes tell clones apart and stay.
  std::string_view suffix = rest.substr(1);
  if (!suffix.starts_with(".llvm.")) out += suffix;
  return out;
}

}  // namespace assay::symbol
