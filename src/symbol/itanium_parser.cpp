#include "symbol/itanium_parser.h"

#include <algorithm>
#include <utility>

namespace assay::symbol {
namespace {

constexpr int kMaxDepth = 192;
constexpr int kMaxSteps = 100000;
constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kMaxWorkBytes = 8 << 20;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Operator {
  std::string_view code, sign;
  int operands;  // as an expression; 0: none of these
};
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

const Operator* find_operator(std::string_view code) {
  auto it = std::find_if(std::begin(kOperators), std::end(kOperators),
                         [&](const Operator& o) { return o.code == code; });
  return it == std::end(kOperators) ? nullptr : it;
}

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

class ItaniumParser::Deeper {
 public:
  explicit Deeper(ItaniumParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxDepth || ++parser_.steps_ > kMaxSteps) parser_.fail();
  }
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  ItaniumParser& parser_;
};

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
    ++at_;
    std::string bound;
    if (is_digit(peek())) {
      bound = std::to_string(number());
    } else if (peek() != '_') {
      bound = expression();
    }
    if (!eat('_')) fail();
    out = type();
    out.after = (out.is_array ? "[" : " [") + bound + "]" + out.after;
    out.is_array = true;
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
  if (!eat('D')) {
    fail();
    return out;
  }
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
