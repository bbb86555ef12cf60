// Literals, expressions and operators of mangled C++ names.
#include <algorithm>
#include <utility>

#include "symbol/demangle/itanium_grammar.h"

namespace assay::symbol {
namespace {

constexpr Operator kOperators[] = {
    {"nw", "new", 0},      {"na", "new[]", 0}, {"dl", "delete", 1}, {"da", "delete[]", 1},
    {"ps", "+", 1},        {"ng", "-", 1},     {"ad", "&", 1},      {"de", "*", 1},
    {"co", "~", 1},        {"pl", "+", 2},     {"mi", "-", 2},      {"ml", "*", 2},
    {"dv", "/", 2},        {"rm", "%", 2},     {"an", "&", 2},      {"or", "|", 2},
    {"eo", "^", 2},        {"aS", "=", 2},     {"pL", "+=", 2},     {"mI", "-=", 2},
    {"mL", "*=", 2},       {"dV", "/=", 2},    {"rM", "%=", 2},     {"aN", "&=", 2},
    {"oR", "|=", 2},       {"eO", "^=", 2},    {"ls", "<<", 2},     {"rs", ">>", 2},
    {"lS", "<<=", 2},      {"rS", ">>=", 2},   {"eq", "==", 2},     {"ne", "!=", 2},
    {"lt", "<", 2},        {"gt", ">", 2},     {"le", "<=", 2},     {"ge", ">=", 2},
    {"ss", "<=>", 2},      {"nt", "!", 1},     {"aa", "&&", 2},     {"oo", "||", 2},
    {"pp", "++", 1},       {"mm", "--", 1},    {"cm", ",", 2},      {"pm", "->*", 2},
    {"pt", "->", 2},       {"cl", "()", 0},    {"ix", "[]", 2},     {"qu", "?", 3},
    {"aw", "co_await", 1}, {"dt", ".", 2},     {"ds", ".*", 2},
};

}  // namespace

const Operator* find_operator(std::string_view code) {
  auto it = std::find_if(std::begin(kOperators), std::end(kOperators),
                         [&](const Operator& o) { return o.code == code; });
  return it == std::end(kOperators) ? nullptr : it;
}

std::string ItaniumParser::literal() {
  if (!eat('L')) fail();
  if (failed_) return "";
  if (eat("_Z") || eat('Z')) {
    bool keep = std::exchange(keep_arguments_, false);
    auto saved = arguments_;
    std::string out = encoding();
    arguments_ = std::move(saved);
    keep_arguments_ = keep;
    if (!eat('E')) fail();
    return out;
  }
  char code = peek();
  std::string shown_type = type().text();
  std::string value;
  if (eat('n')) value = "-";
  while (!failed_ && at_ < text_.size() && peek() != 'E') value += text_[at_++];
  if (!eat('E')) fail();
  if (code == 'b' && (value == "0" || value == "1")) return value == "1" ? "true" : "false";
  switch (code) {
    case 'i':
      return value;
    case 'j':
      return value + "u";
    case 'l':
      return value + "l";
    case 'm':
      return value + "ul";
    case 'x':
      return value + "ll";
    case 'y':
      return value + "ull";
    default:
      return "(" + shown_type + ")" + value;
  }
}

std::string ItaniumParser::expression_list() {
  std::string out;
  while (!failed_ && !eat('E')) {
    if (at_ >= text_.size()) fail();
    std::string one = expression();
    if (!out.empty() && !one.empty()) out += ", ";
    out += one;
    grow(out);
  }
  return out;
}

std::string ItaniumParser::expression() {
  Deeper deeper(*this);
  if (failed_) return "";
  std::string out;
  char c = peek();
  if (c == 'L') return literal();
  if (c == 'T' && (peek(1) == '_' || is_digit(peek(1)) || peek(1) == 'L'))
    return template_parameter();
  if (eat("fpT")) return "this";
  if (c == 'f' && (peek(1) == 'p' || (peek(1) == 'L' && is_digit(peek(2))))) {
    at_ += 2;
    if (is_digit(peek()) && text_[at_ - 1] == 'L') {
      number();
      if (!eat('p')) fail();
    }
    (void)qualifiers();
    uint64_t index = is_digit(peek()) ? number() + 2 : 1;
    if (!eat('_')) fail();
    return "{parm#" + std::to_string(index) + "}";
  }
  if (c == 'f' && (peek(1) == 'l' || peek(1) == 'r' || peek(1) == 'L' || peek(1) == 'R')) {
    bool two = peek(1) == 'L' || peek(1) == 'R';
    at_ += 2;
    const Operator* found = find_operator(text_.substr(std::min(at_, text_.size()), 2));
    if (found == nullptr) {
      fail();
      return "";
    }
    at_ += 2;
    std::string first = expression();
    std::string second = two ? expression() : "";
    out = "(..." + std::string(found->sign) + first + second + ")";
    grow(out);
    return out;
  }
  return named_expression();
}

std::string ItaniumParser::named_expression() {
  std::string out;
  bool global = eat("gs");
  if (eat("cl") || eat("cp")) {
    std::string callee = expression();
    out = callee + "(" + expression_list() + ")";
  } else if (eat("cv")) {
    std::string target = type().text();
    out = "(" + target + ")(" + (eat('_') ? expression_list() : expression()) + ")";
  } else if (eat("tl")) {
    std::string target = type().text();
    out = target + "{" + expression_list() + "}";
  } else if (eat("il")) {
    out = "{" + expression_list() + "}";
  } else if (eat("nw") || eat("na")) {
    std::string placed;
    while (!failed_ && !eat('_')) placed += expression();
    out = "new " + type().text();
    if (eat("pi")) {
      out += "(" + expression_list() + ")";
    } else if (!eat('E')) {
      fail();
    }
  } else if (eat("dc") || eat("sc") || eat("cc") || eat("rc")) {
    std::string target = type().text();
    out = "cast<" + target + ">(" + expression() + ")";
  } else if (eat("ti") || eat("st") || eat("at")) {
    std::string word = text_.substr(at_ - 2, 2) == "ti"   ? "typeid"
                       : text_.substr(at_ - 2, 2) == "st" ? "sizeof"
                                                          : "alignof";
    out = word + " (" + type().text() + ")";
  } else if (eat("te") || eat("sz") || eat("az") || eat("nx")) {
    std::string_view code = text_.substr(at_ - 2, 2);
    std::string word = code == "te"   ? "typeid"
                       : code == "sz" ? "sizeof"
                       : code == "az" ? "alignof"
                                      : "noexcept";
    out = word + " (" + expression() + ")";
  } else if (eat("sZ")) {
    out = "sizeof...(" + (peek() == 'T' ? template_parameter() : expression()) + ")";
  } else if (eat("sP")) {
    out = "sizeof...(";
    while (!failed_ && !eat('E')) out += template_argument();
    out += ")";
  } else if (eat("sp")) {
    out = expression();
  } else if (eat("tw")) {
    out = "throw " + expression();
  } else if (eat("tr")) {
    out = "throw";
  } else if (eat("sr")) {
    // A member of a type that depends on template arguments.
    bool nested = eat('N');
    Name info;
    if (nested || !is_digit(peek())) {
      out = type().text();
      if (peek() == 'I') out += template_arguments();
    }
    if (nested || out.empty()) {
      while (!failed_ && !eat('E')) {
        out += (out.empty() ? "" : "::") + source_name();
        if (peek() == 'I') out += template_arguments();
      }
    }
    out += "::" + unqualified_name("", info);
    if (peek() == 'I') out += template_arguments();
  } else if (eat("on")) {
    Name info;
    out = operator_name(info);
    if (peek() == 'I') out += template_arguments();
  } else if (eat("dn")) {
    out = "~" + (is_digit(peek()) ? source_name() : type().text());
  } else if (is_digit(peek())) {
    out = source_name() + abi_tags();
    if (peek() == 'I') out += template_arguments();
  } else {
    const Operator* found = find_operator(text_.substr(std::min(at_, text_.size()), 2));
    if (found == nullptr || found->operands == 0) {
      fail();
      return "";
    }
    at_ += 2;
    if (found->operands == 1) eat('_');  // ++x, as opposed to x++
    out = found->operands == 1 ? std::string(found->sign) : "";
    for (int i = 0; i < found->operands && !failed_; ++i) {
      std::string operand = expression();
      if (i > 0) out += i == 2 ? std::string(" : ") : std::string(found->sign);
      out += "(" + operand + ")";
    }
  }
  if (global) out = "::" + out;
  grow(out);
  return out;
}

}  // namespace assay::symbol
