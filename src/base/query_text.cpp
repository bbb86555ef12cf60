#include "base/query_text.h"

#include <algorithm>

namespace assay {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

Result<std::string> unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail("a percent sign is not followed by two hex digits");
      plain += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return plain;
}

}  // namespace

Result<Parameters> parse_query(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view pair = query.substr(0, end);
    size_t equals = std::min(pair.find('='), pair.size());
    auto name = unescape(pair.substr(0, equals));
    if (!name) return std::unexpected(name.error());
    auto value = unescape(pair.substr(std::min(equals + 1, pair.size())));
    if (!value) return std::unexpected(value.error());
    if (!name->empty()) parameters[*name] = *value;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return parameters;
}

std::string escape_query(std::string_view value) {
  constexpr std::string_view kPlain = "-._~*,:/";
  std::string text;
  for (char c : value) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != kPlain.npos) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

}  // namespace assay
