#include "formats/export/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace assay::formats {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "…";

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

// The character at the beginning of `text`, which is not empty.
Character decode(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes > text.size()) return {};
  uint32_t code = first & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes, true};
}

bool is_harmful(uint32_t code) {
  bool control = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
  bool direction = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                   code == 0x200e || code == 0x200f || code == 0x061c;
  return control || direction || (code & 0xfffe) == 0xfffe || code == 0xfeff;
}

// Empty: stands for itself.
std::string_view xml_escape(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

// How many characters of printable ASCII a text begins with.
size_t plain_characters(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && text[count] >= ' ' && text[count] <= '~') ++count;
  return count;
}

}  // namespace

std::string clean_text(std::string_view text, size_t most_characters) {
  std::string clean;
  clean.reserve(text.size());
  size_t characters = 0;
  while (!text.empty()) {
    // Nearly all names are nothing but this.
    size_t plain = std::min(plain_characters(text), most_characters - characters);
    clean += text.substr(0, plain);
    text.remove_prefix(plain);
    characters += plain;
    if (text.empty()) break;
    if (characters++ == most_characters) return clean += kEllipsis;
    Character c = decode(text);
    if (c.code == '\n' || c.code == '\t' || c.code == '\r') {
      clean += ' ';
    } else if (!c.valid || is_harmful(c.code)) {
      clean += kReplacement;
    } else {
      clean += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return clean;
}

std::string xml_text(std::string_view text, size_t most_characters) {
  std::string clean = clean_text(text, most_characters);
  std::string escaped;
  size_t begin = 0;
  for (size_t at = 0; at < clean.size(); ++at) {
    std::string_view instead = xml_escape(clean[at]);
    if (instead.empty()) continue;
    escaped.append(clean, begin, at - begin);
    escaped += instead;
    begin = at + 1;
  }
  return escaped.empty() ? clean : escaped.append(clean, begin);
}

std::string harmless_cell(std::string clean) {
  size_t first = clean.find_first_not_of(' ');
  bool computes = first != std::string::npos &&
                  std::string_view("=+-@").find(clean[first]) != std::string_view::npos;
  if (computes) clean.insert(clean.begin(), '\'');
  return clean;
}

std::string json_text(std::string_view text, size_t most_characters) {
  std::string escaped = "\"";
  char before = 0;
  for (char c : clean_text(text, most_characters)) {
    if (c == '"' || c == '\\' || (c == '/' && before == '<')) escaped += '\\';
    escaped += c;
    before = c;
  }
  return escaped += '"';
}

std::string folded_text(std::string_view text, size_t most_characters) {
  std::string clean = clean_text(text, most_characters);
  for (char& c : clean) c = c == ';' ? ':' : c;
  return clean.empty() ? "[unnamed]" : clean;
}

std::string file_name_text(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string name;
  for (char c : text.substr(0, kLongest)) {
    bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                (c == '.' && !name.empty());
    if (kept) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "unnamed" : name;
}

size_t character_count(std::string_view utf8) {
  size_t count = 0;
  for (char c : utf8) count += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace assay::formats
