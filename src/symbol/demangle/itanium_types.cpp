// Types of mangled C++ names.
#include <utility>

#include "symbol/demangle/itanium_grammar.h"

namespace assay::symbol {
namespace {

const char* builtin_type(char c) {
  switch (c) {
    case 'v':
      return "void";
    case 'w':
      return "wchar_t";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'a':
      return "signed char";
    case 'h':
      return "unsigned char";
    case 's':
      return "short";
    case 't':
      return "unsigned short";
    case 'i':
      return "int";
    case 'j':
      return "unsigned int";
    case 'l':
      return "long";
    case 'm':
      return "unsigned long";
    case 'x':
      return "long long";
    case 'y':
      return "unsigned long long";
    case 'n':
      return "__int128";
    case 'o':
      return "unsigned __int128";
    case 'f':
      return "float";
    case 'd':
      return "double";
    case 'e':
      return "long double";
    case 'g':
      return "__float128";
    case 'z':
      return "...";
    default:
      return nullptr;
  }
}

}  // namespace

ItaniumParser::Type ItaniumParser::pointer_to(Type inner, const char* sign) {
  if (inner.is_function || inner.is_array) {
    // Once: "int (*) [3]"; what is put around it later goes inside.
    inner.before += inner.is_array ? " (" : "(";
    inner.after = ")" + inner.after;
    inner.is_function = inner.is_array = false;
  }
  // References collapse: T& && is T&, T&& & is T&.
  bool to_reference = inner.after.empty() && inner.before.ends_with('&') && sign[0] == '&';
  if (!to_reference) {
    inner.before += sign;
  } else if (sign[1] == '\0' && inner.before.ends_with("&&")) {
    inner.before.pop_back();
  }
  return inner;
}

ItaniumParser::Type ItaniumParser::type() {
  Deeper deeper(*this);
  Type out;
  if (failed_) return out;
  char c = peek();
  bool is_substitution = true;
  if (c == 'r' || c == 'V' || c == 'K') {
    std::string words = qualifiers();
    out = type();
    (out.is_function ? out.after : out.before) += words;
  } else if (c == 'P' || c == 'R' || c == 'O') {
    ++at_;
    out = pointer_to(type(), c == 'P' ? "*" : c == 'R' ? "&" : "&&");
  } else if (c == 'C' || c == 'G') {
    ++at_;
    out = type();
    out.before += c == 'C' ? " _Complex" : " _Imaginary";
  } else if (c == 'F') {
    out = function_type();
  } else if (c == 'A') {
    out = array_type();
  } else if (c == 'M') {
    ++at_;
    std::string owner = type().text();
    out = pointer_to(type(), "");
    out.before += (out.before.ends_with('(') ? "" : " ") + owner + "::*";
  } else if (c == 'T') {
    out.before = template_parameter();
    if (peek() == 'I') {
      substitutions_.push_back(out.before);
      out.before += template_arguments();
    }
  } else if (c == 'S' && peek(1) != 't') {
    out.before = substitution();
    is_substitution = peek() == 'I';
    if (is_substitution) out.before += template_arguments();
  } else if (c == 'N' || c == 'Z' || is_digit(c) || c == 'S') {
    bool keep = std::exchange(keep_arguments_, false);
    Name found = name();
    keep_arguments_ = keep;
    out.before = found.text;
  } else {
    size_t begin = at_;
    out = builtin_or_special();
    // Builtin types stand for themselves; the composed ones can be referred to.
    is_substitution = text_[std::min(begin, text_.size() - 1)] == 'U' ||
                      (at_ - begin > 2 && text_[begin] == 'D' && text_[begin + 1] != 'F') ||
                      text_[begin] == 'u';
  }
  std::string whole = out.text();
  grow(whole);
  if (is_substitution && !failed_) substitutions_.push_back(std::move(whole));
  return out;
}

ItaniumParser::Type ItaniumParser::array_type() {
  std::string bound;
  if (!eat('A')) fail();
  if (is_digit(peek())) {
    bound = std::to_string(number());
  } else if (peek() != '_') {
    bound = expression();
  }
  if (!eat('_')) fail();
  Type out = type();
  out.after = (out.is_array ? "[" : " [") + bound + "]" + out.after;
  out.is_array = true;
  return out;
}

ItaniumParser::Type ItaniumParser::function_type() {
  Type out;
  if (!eat('F')) fail();
  eat('Y');
  std::string returned = type().text();
  std::string list;
  std::string suffix;
  while (!failed_) {
    if (at_ >= text_.size()) fail();
    if (eat('E')) break;
    if (eat("RE")) {
      suffix = " &";
      break;
    }
    if (eat("OE")) {
      suffix = " &&";
      break;
    }
    if (peek() == 'v' && peek(1) == 'E') {
      ++at_;
      continue;
    }
    std::string one = type().text();
    if (!list.empty() && !one.empty()) list += ", ";
    list += one;
    grow(list);
  }
  out.before = returned + " ";
  out.after = "(" + list + ")" + suffix;
  out.is_function = true;
  return out;
}

ItaniumParser::Type ItaniumParser::builtin_or_special() {
  Type out;
  if (const char* builtin = builtin_type(peek())) {
    ++at_;
    out.before = builtin;
    return out;
  }
  if (eat('u')) {
    out.before = source_name();
    if (peek() == 'I') out.before += template_arguments();
    return out;
  }
  if (eat('U')) {
    std::string words = source_name();
    if (peek() == 'I') words += template_arguments();
    out = type();
    out.before += " " + words;
    return out;
  }
  if (eat('D')) return extended_type();
  fail();
  return out;
}

// What stands behind a D: types that came after the first version of the grammar.
ItaniumParser::Type ItaniumParser::extended_type() {
  Type out;
  static constexpr std::pair<char, std::string_view> kSimple[] = {
      {'d', "decimal64"},      {'e', "decimal128"},       {'f', "decimal32"}, {'h', "half"},
      {'i', "char32_t"},       {'s', "char16_t"},         {'u', "char8_t"},   {'a', "auto"},
      {'c', "decltype(auto)"}, {'n', "decltype(nullptr)"}};
  for (auto [code, words] : kSimple) {
    if (eat(code)) {
      out.before = words;
      return out;
    }
  }
  if (eat('p')) return type();  // a pack: its elements are already joined
  if (eat('t') || eat('T')) {
    out.before = "decltype (" + expression() + ")";
    if (!eat('E')) fail();
    return out;
  }
  if (eat('F')) {
    out.before = "_Float" + std::to_string(number());
    eat('x');
    eat('_');
    return out;
  }
  if (eat('v')) {
    std::string size = is_digit(peek()) ? std::to_string(number()) : eat('_') ? expression() : "";
    if (!eat('_')) fail();
    out = type();
    out.before += " __vector(" + size + ")";
    return out;
  }
  if (eat('o')) {
    out = function_type();
    out.after += " noexcept";
    return out;
  }
  if (eat('O')) {
    std::string condition = expression();
    if (!eat('E')) fail();
    out = function_type();
    out.after += " noexcept(" + condition + ")";
    return out;
  }
  fail();
  return out;
}

}  // namespace assay::symbol
