#include "load/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace assay::load {
namespace {

constexpr std::string_view kHidden = "***";

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

// Of a header, a parameter or an option.
bool names_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kParts{
      "authorization", "cookie",  "token",  "secret",    "password",  "passwd",
      "api-key",       "api_key", "apikey", "signature", "credential"};
  std::string lower;
  for (char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::any_of(
      kParts, [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

// Which quotes are open at each place of the text: ', " or none.
class Quotes {
 public:
  void pass(char c) {
    bool escapes = !escaped_ && c == '\\' && open_ != '\'';
    if (!escaped_ && open_ != 0 && c == open_) {
      open_ = 0;
    } else if (!escaped_ && open_ == 0 && (c == '\'' || c == '"')) {
      open_ = c;
    }
    escaped_ = escapes;
  }
  char open() const { return open_; }

 private:
  char open_ = 0;
  bool escaped_ = false;
};

size_t end_of_value(std::string_view text, size_t begin, bool over_blanks) {
  std::string_view ends = over_blanks ? std::string_view("'\"\n") : std::string_view(" \t\n'\"");
  size_t end = text.find_first_of(ends, begin);
  return end == std::string_view::npos ? text.size() : end;
}

// "user:password" of "//user:password@host"; empty: none. `at` is behind the two slashes.
std::string_view user_part(std::string_view text, size_t at) {
  size_t end = text.find_first_of("/?# \t\n'\"", at);
  std::string_view authority = text.substr(at, end == text.npos ? text.npos : end - at);
  size_t sign = authority.rfind('@');
  return sign == authority.npos ? std::string_view() : authority.substr(0, sign);
}

}  // namespace

std::string hide_secrets(std::string_view text) {
  std::string shown;
  Quotes quotes;
  size_t name_begin = 0;
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    shown += c;
    quotes.pass(c);
    ++at;
    if (is_name_character(c)) continue;
    std::string_view name = text.substr(name_begin, at - 1 - name_begin);
    name_begin = at;
    if (c == '/' && text.substr(0, at).ends_with("://")) {
      std::string_view user = user_part(text, at);
      if (!user.empty()) shown += kHidden;
      at += user.size();
      name_begin = at;
    } else if ((c == ':' || c == '=') && names_secret(name) && text.substr(at, 2) != "//") {
      size_t begin = text.find_first_not_of(' ', at);
      if (begin == text.npos) begin = text.size();
      // A header's value goes on over blanks, to the quote that holds it or to the line's end.
      bool goes_on = c == ':' && (quotes.open() != 0 || begin > at);
      size_t end = end_of_value(text, begin, goes_on);
      if (c == '=') end = std::min(end, text.find_first_of("&#;", begin));
      if (begin > at && c == '=') end = begin;  // "token = x" is no parameter
      if (end <= begin) continue;
      shown.append(text, at, begin - at);
      shown += kHidden;
      at = name_begin = end;
    }
  }
  return shown;
}

}  // namespace assay::load
