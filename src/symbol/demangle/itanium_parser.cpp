// Names of mangled C++ symbols; types and expressions have files of their own.
#include "symbol/demangle/itanium_parser.h"

#include <algorithm>
#include <utility>

#include "symbol/demangle/itanium_grammar.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kMaxWorkBytes = 8 << 20;

// The last part of a qualified name: what its constructors are called.
std::string last_part(const std::string& scope) {
  std::string_view name = scope;
  int depth = 0;
  size_t end = name.size();
  for (size_t i = name.size(); i-- > 0;) {
    if (name[i] == '>') ++depth;
    if (name[i] == '<' && --depth == 0) end = i;
    if (depth == 0 && name[i] == ':')
      return std::string(name.substr(i + 1, end > i ? end - i - 1 : 0));
  }
  return std::string(name.substr(0, end));
}

}  // namespace

bool ItaniumParser::eat(char c) {
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}
bool ItaniumParser::eat(std::string_view s) {
  if (!text_.substr(std::min(at_, text_.size())).starts_with(s)) return false;
  at_ += s.size();
  return true;
}

// Every text that is made counts: a name that refers to itself doubles quietly.
void ItaniumParser::grow(const std::string& made) {
  made_bytes_ += made.size();
  if (made.size() > kMaxTextBytes || made_bytes_ > kMaxWorkBytes) fail();
}

uint64_t ItaniumParser::number() {
  uint64_t value = 0;
  if (!is_digit(peek())) fail();
  while (is_digit(peek()) && value < 1000000)
    value = value * 10 + static_cast<uint64_t>(text_[at_++] - '0');
  return value;
}

std::string ItaniumParser::run() {
  if (!eat("_Z")) return "";
  std::string out = encoding();
  // ".part.0" and the like tell copies apart.
  if (!failed_ && peek() == '.') {
    out += " [clone " + std::string(text_.substr(at_)) + "]";
    at_ = text_.size();
  }
  return failed_ || at_ != text_.size() ? "" : out;
}

std::string ItaniumParser::encoding() {
  Deeper deeper(*this);
  if (failed_) return "";
  if (peek() == 'T' && peek(1) != '\0' && peek(1) != '_' && !is_digit(peek(1)))
    return special_name();
  if (peek() == 'G' && (peek(1) == 'V' || peek(1) == 'R' || peek(1) == 'T')) return special_name();
  Name function = name();
  if (failed_ || at_ >= text_.size() || peek() == 'E' || peek() == '.') return function.text;
  std::string returned;
  std::string list = parameters(function.has_arguments && !function.no_return, returned);
  std::string out = returned.empty() ? "" : returned + " ";
  out += function.text + "(" + list + ")" + function.qualifiers;
  grow(out);
  return out;
}

std::string ItaniumParser::call_offset() {
  // h number _ or v number _ number _: distances that no one reads.
  bool two = peek() == 'v';
  ++at_;
  for (int i = 0; i < (two ? 2 : 1) && !failed_; ++i) {
    eat('n');
    number();
    if (!eat('_')) fail();
  }
  return "";
}

std::string ItaniumParser::special_name() {
  static constexpr std::pair<std::string_view, std::string_view> kOfTypes[] = {
      {"TV", "vtable for "},
      {"TT", "VTT for "},
      {"TI", "typeinfo for "},
      {"TS", "typeinfo name for "}};
  for (auto [code, words] : kOfTypes) {
    if (eat(code)) return std::string(words) + type().text();
  }
  if (eat("GV")) return "guard variable for " + name().text;
  if (eat("TW")) return "TLS wrapper function for " + name().text;
  if (eat("TH")) return "TLS init function for " + name().text;
  if (eat("GR")) {
    std::string out = "reference temporary for " + name().text;
    while (at_ < text_.size() && text_[at_] != '.') ++at_;
    return out;
  }
  if (eat("GTt") || eat("GTn")) return "transaction clone for " + encoding();
  if (peek() == 'T' && (peek(1) == 'h' || peek(1) == 'v')) {
    bool is_virtual = peek(1) == 'v';
    ++at_;
    call_offset();
    return (is_virtual ? "virtual thunk to " : "non-virtual thunk to ") + encoding();
  }
  if (eat("Tc")) {
    call_offset();
    call_offset();
    return "covariant return thunk to " + encoding();
  }
  fail();
  return "";
}

std::string ItaniumParser::parameters(bool has_return, std::string& returned) {
  bool keep = std::exchange(keep_arguments_, false);
  if (has_return) returned = type().text();
  std::string out;
  if (peek() == 'v' && (at_ + 1 >= text_.size() || peek(1) == 'E' || peek(1) == '.')) {
    ++at_;
  } else {
    while (!failed_ && at_ < text_.size() && peek() != 'E' && peek() != '.') {
      std::string one = type().text();
      if (!out.empty() && !one.empty()) out += ", ";
      out += one;
      grow(out);
    }
  }
  keep_arguments_ = keep;
  return out;
}

std::string ItaniumParser::qualifiers() {
  std::string out;
  if (eat('r')) out += " restrict";
  if (eat('V')) out += " volatile";
  if (eat('K')) out += " const";
  return out;
}

ItaniumParser::Name ItaniumParser::name() {
  Deeper deeper(*this);
  Name out;
  if (failed_) return out;
  if (peek() == 'N') return nested_name();
  if (peek() == 'Z') return local_name();
  bool substituted = false;
  if (peek() == 'S' && peek(1) != 't') {
    out.text = substitution();
    substituted = true;
    if (peek() != 'I') fail();
  } else {
    std::string scope = eat("St") ? "std::" : "";
    out.text = scope + unqualified_name("", out);
  }
  if (peek() == 'I') {
    if (!substituted) substitutions_.push_back(out.text);
    out.text += template_arguments();
    out.has_arguments = true;
    grow(out.text);
  }
  return out;
}

ItaniumParser::Name ItaniumParser::nested_name() {
  Name out;
  ++at_;
  out.qualifiers = qualifiers();
  if (eat('R')) out.qualifiers += " &";
  if (eat('O')) out.qualifiers += " &&";
  size_t parts = 0;
  while (!failed_ && !eat('E')) {
    if (at_ >= text_.size()) {
      fail();
      break;
    }
    char c = peek();
    if (c == 'I') {
      out.text += template_arguments();
      out.has_arguments = true;
    } else if (c == 'S' && peek(1) == 't' && parts == 0) {
      at_ += 2;
      out.text = "std";
      ++parts;
      continue;
    } else if (c == 'S') {
      out.text = substitution();
      ++parts;
      continue;
    } else if (c == 'T') {
      out.text = template_parameter();
    } else if (c == 'D' && (peek(1) == 't' || peek(1) == 'T')) {
      out.text = type().text();
      continue;  // the type is already a substitution
    } else if (c == 'M') {
      ++at_;  // the initialiser that a lambda stands in
      continue;
    } else {
      out.has_arguments = out.no_return = false;
      std::string part = unqualified_name(out.text, out);
      out.text = out.text.empty() ? part : out.text + "::" + part;
    }
    ++parts;
    grow(out.text);
    substitutions_.push_back(out.text);
  }
  if (parts == 0) fail();
  // The whole name is no substitution of itself; a type that is made of it is, and adds it again.
  if (!substitutions_.empty()) substitutions_.pop_back();
  return out;
}

ItaniumParser::Name ItaniumParser::local_name() {
  Name out;
  ++at_;
  bool keep = std::exchange(keep_arguments_, true);
  std::string function = encoding();
  keep_arguments_ = keep;
  if (!eat('E')) fail();
  auto discriminator = [this] {
    if (!eat('_')) return;
    bool longer = eat('_');
    number();
    if (longer) eat('_');
  };
  if (eat('s')) {
    discriminator();
    out.text = function + "::string literal";
    return out;
  }
  if (eat('d')) {
    if (is_digit(peek())) number();
    if (!eat('_')) fail();
  }
  out = name();
  discriminator();
  out.text = function + "::" + out.text;
  grow(out.text);
  return out;
}

std::string ItaniumParser::abi_tags() {
  std::string out;
  while (eat('B')) out += "[abi:" + source_name() + "]";
  return out;
}

std::string ItaniumParser::unqualified_name(const std::string& scope, Name& info) {
  Deeper deeper(*this);
  if (failed_) return "";
  eat('L');  // internal linkage
  char c = peek();
  if (is_digit(c)) {
    std::string out = source_name();
    return out + abi_tags();
  }
  if (c == 'U') return unnamed_type();
  if (c == 'C' && (is_digit(peek(1)) || peek(1) == 'I')) {
    ++at_;
    bool inherits = eat('I');
    ++at_;
    if (inherits) (void)type();
    info.no_return = true;
    return last_part(scope) + abi_tags();
  }
  if (c == 'D' && is_digit(peek(1))) {
    at_ += 2;
    info.no_return = true;
    return "~" + last_part(scope) + abi_tags();
  }
  if (eat("DC")) {
    std::string out = "[";
    while (!failed_ && !eat('E')) out += (out.size() > 1 ? ", " : "") + source_name();
    return out + "]";
  }
  std::string out = operator_name(info);
  return out + abi_tags();
}

std::string ItaniumParser::source_name() {
  uint64_t size = number();
  if (failed_ || size == 0 || size > text_.size() - at_) {
    fail();
    return "";
  }
  std::string_view out = text_.substr(at_, size);
  at_ += size;
  if (out.starts_with("_GLOBAL_") && out.size() > 10 &&
      out.find("N", 8) != std::string_view::npos) {
    return "(anonymous namespace)";
  }
  return std::string(out);
}

std::string ItaniumParser::operator_name(Name& info) {
  if (eat("cv")) {
    info.no_return = true;
    bool keep = std::exchange(keep_arguments_, false);
    std::string out = "operator " + type().text();
    keep_arguments_ = keep;
    return out;
  }
  if (eat("li")) return "operator\"\" " + source_name();
  if (peek() == 'v' && is_digit(peek(1))) {
    at_ += 2;
    return "operator " + source_name();
  }
  const Operator* found = find_operator(text_.substr(std::min(at_, text_.size()), 2));
  if (found == nullptr) {
    fail();
    return "";
  }
  at_ += 2;
  bool word = found->sign[0] >= 'a' && found->sign[0] <= 'z';
  return (word ? "operator " : "operator") + std::string(found->sign);
}

std::string ItaniumParser::unnamed_type() {
  if (eat("Ut")) {
    uint64_t index = is_digit(peek()) ? number() + 2 : 1;
    if (!eat('_')) fail();
    return "{unnamed type#" + std::to_string(index) + "}";
  }
  if (!eat("Ul")) {
    fail();
    return "";
  }
  bool keep = std::exchange(keep_arguments_, false);
  std::string list;
  if (!eat("vE")) {
    while (!failed_ && !eat('E')) {
      // Template parameters of a generic lambda are declared before its parameters.
      if (peek() == 'T' && (peek(1) == 'y' || peek(1) == 'n' || peek(1) == 't' || peek(1) == 'p')) {
        fail();
        break;
      }
      list += (list.empty() ? "" : ", ") + type().text();
      grow(list);
    }
  }
  keep_arguments_ = keep;
  uint64_t index = is_digit(peek()) ? number() + 2 : 1;
  if (!eat('_')) fail();
  return "{lambda(" + list + ")#" + std::to_string(index) + "}" + abi_tags();
}

std::string ItaniumParser::template_arguments() {
  Deeper deeper(*this);
  if (!eat('I')) fail();
  if (failed_) return "";
  bool keep = std::exchange(keep_arguments_, false);
  std::vector<std::string> all;
  std::string out = "<";
  while (!failed_ && !eat('E')) {
    if (at_ >= text_.size()) fail();
    all.push_back(template_argument());
    // While its own arguments are read, a function's later ones may refer to the earlier.
    if (keep) arguments_ = all;
    if (all.back().empty()) continue;  // an empty pack
    if (out.size() > 1) out += ", ";
    out += all.back();
    grow(out);
  }
  keep_arguments_ = keep;
  if (out.ends_with('>')) out += ' ';
  return out + ">";
}

std::string ItaniumParser::template_argument() {
  if (eat('X')) {
    std::string out = expression();
    if (!eat('E')) fail();
    return "(" + out + ")";
  }
  if (peek() == 'L') return literal();
  if (eat('J')) {
    std::string out;
    while (!failed_ && !eat('E')) {
      if (at_ >= text_.size()) fail();
      std::string one = template_argument();
      if (!out.empty() && !one.empty()) out += ", ";
      out += one;
      grow(out);
    }
    return out;
  }
  return type().text();
}

std::string ItaniumParser::template_parameter() {
  if (!eat('T')) fail();
  if (eat('L')) {  // of an enclosing lambda
    number();
    if (!eat('_')) fail();
  }
  uint64_t index = is_digit(peek()) ? number() + 1 : 0;
  if (!eat('_')) fail();
  // Not yet known: the parameters of a generic lambda, and those of a conversion to one's own type.
  if (index < arguments_.size()) return arguments_[index];
  has_unknown_ = true;
  return "auto";
}

std::string ItaniumParser::substitution() {
  if (!eat('S')) fail();
  static constexpr std::pair<char, std::string_view> kKnown[] = {
      {'a', "std::allocator"}, {'b', "std::basic_string"}, {'s', "std::string"},
      {'i', "std::istream"},   {'o', "std::ostream"},      {'d', "std::iostream"}};
  for (auto [code, name] : kKnown) {
    if (eat(code)) return std::string(name) + abi_tags();
  }
  uint64_t index = 0;
  if (peek() != '_') {
    while (!failed_ && peek() != '_') {
      char c = peek();
      bool valid = is_digit(c) || (c >= 'A' && c <= 'Z');
      if (!valid || index > 1000000) {
        fail();
        return "";
      }
      index = index * 36 + static_cast<uint64_t>(is_digit(c) ? c - '0' : c - 'A' + 10);
      ++at_;
    }
    ++index;
  }
  if (!eat('_') || index >= substitutions_.size()) {
    fail();
    return "";
  }
  std::string out = substitutions_[index];
  grow(out);
  return out;
}

}  // namespace assay::symbol
