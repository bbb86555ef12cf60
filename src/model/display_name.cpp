#include "model/display_name.h"

#include <algorithm>
#include <array>
#include <vector>

namespace assay::model {
namespace {

constexpr std::string_view kFolded = "<…>";
constexpr std::string_view kOperator = "operator";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

// The length of the operator sign at `at` that follows the word "operator"; 0: there is none.
size_t operator_sign(std::string_view name, size_t at) {
  static constexpr std::array<std::string_view, 16> kSigns{"<=>", "<<=", ">>=", "->*", "<<", ">>",
                                                           "<=",  ">=",  "->",  "()",  "<",  ">",
                                                           "[]",  ",",   "&&",  "||"};
  for (std::string_view sign : kSigns) {
    if (name.substr(at).starts_with(sign)) return sign.size();
  }
  return 0;
}

bool ends_with_operator(std::string_view text) {
  if (!text.ends_with(kOperator)) return false;
  text.remove_suffix(kOperator.size());
  return text.empty() || !is_word(text.back());
}

// The index after the bracket that closes the one at `at`; npos when it is never closed. "->" and
// operator signs are not brackets.
size_t after_closing(std::string_view name, size_t at) {
  std::vector<char> open;
  for (size_t i = at; i < name.size(); ++i) {
    char c = name[i];
    if (i > at && ends_with_operator(name.substr(0, i))) {
      if (size_t sign = operator_sign(name, i)) {
        i += sign - 1;
        continue;
      }
    }
    if (c == '-' && i + 1 < name.size() && name[i + 1] == '>') {
      ++i;
    } else if (c == '<' || c == '(' || c == '[' || c == '{') {
      open.push_back(c == '<' ? '>' : c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == '>' || c == ')' || c == ']' || c == '}') {
      // A comparison inside an expression leaves an unmatched sign; the next closing bracket
      // removes it.
      while (c != '>' && open.size() > 1 && open.back() == '>') open.pop_back();
      if (open.empty() || open.back() != c) {
        if (c == '>') continue;
        return std::string_view::npos;
      }
      open.pop_back();
      if (open.empty()) return i + 1;
    }
  }
  return std::string_view::npos;
}

// "{lambda(int)#1}" and GCC's "<lambda(int)>": without the parameters.
std::string fold_lambda(std::string_view text) {
  size_t hash = text.rfind('#');
  if (hash == std::string_view::npos) return "{lambda}";
  std::string number(text.substr(hash));
  if (!number.empty() && (number.back() == '}' || number.back() == '>')) number.pop_back();
  return "{lambda" + number + "}";
}

std::string fold(std::string_view name, int depth) {
  constexpr int kMaxDepth = 32;
  std::string out;
  for (size_t at = 0; at < name.size();) {
    char c = name[at];
    if (ends_with_operator(out)) {
      if (size_t sign = operator_sign(name, at)) {
        out += name.substr(at, sign);
        at += sign;
        continue;
      }
    }
    bool lambda =
        name.substr(at).starts_with("{lambda(") || name.substr(at).starts_with("<lambda(");
    if (c == '<' || lambda) {
      size_t end = after_closing(name, at);
      if (end == std::string_view::npos) return out += name.substr(at);
      std::string_view inner = name.substr(at + 1, end - at - 2);
      size_t near =
          out.rfind(kOperator);  // "operator< <int>": the arguments of an operator's template
      bool after_operator = near != std::string::npos && out.size() - near <= kOperator.size() + 4;
      bool opens_path =
          out.empty() || (!is_word(out.back()) && out.back() != ':' && !after_operator);
      if (lambda) {
        out += fold_lambda(name.substr(at, end - at));
      } else if (opens_path && depth < kMaxDepth && inner != "unnamed") {
        out += '<' + fold(inner, depth + 1) + '>';  // Rust's <T as Trait>
      } else {
        out += kFolded;
      }
      at = end;
      continue;
    }
    out += c;
    ++at;
  }
  return out;
}

void strip_suffix(std::string& name, std::string_view suffix) {
  if (name.ends_with(suffix)) name.erase(name.size() - suffix.size());
}

// Where the parameters begin: the "(" that the last ")" closes; npos when the name ends otherwise.
size_t parameters_at(std::string_view name) {
  if (!name.ends_with(')')) return std::string_view::npos;
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      bool is_name = name.substr(i) == "(anonymous namespace)" || i == 0 ||
                     ends_with_operator(name.substr(0, i));
      return is_name ? std::string_view::npos : i;
    }
  }
  return std::string_view::npos;
}

// Where the name itself begins after a return type: after the last space outside all brackets.
size_t name_at(std::string_view name) {
  size_t begin = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    bool word_starts = i == 0 || !is_word(name[i - 1]);
    if (word_starts && name.substr(i).starts_with(kOperator) &&
        (i + kOperator.size() >= name.size() || !is_word(name[i + kOperator.size()]))) {
      return begin;
    }
    if (name[i] == '(' || name[i] == '<' || name[i] == '{' || name[i] == '[') {
      size_t end = after_closing(name, i);
      if (end == std::string_view::npos) return begin;
      i = end - 1;
    } else if (name[i] == ' ') {
      begin = i + 1;
    }
  }
  return begin;
}

}  // namespace

std::string fold_name(std::string_view name) {
  return fold(name, 0);
}

std::string short_name(std::string_view name) {
  std::string out = fold_name(name);
  size_t clone = out.find(" [clone ");
  if (clone != std::string::npos) out.erase(clone);
  for (std::string_view qualifier : {" const", " volatile", " noexcept", " &&", " &", " const"}) {
    strip_suffix(out, qualifier);
  }
  size_t parameters = parameters_at(out);
  // Without parameters there is no return type either: "operator new", "D main", "[kernel]+0x1".
  if (parameters == std::string::npos) return out;
  out.erase(parameters);
  size_t begin = name_at(out);
  return begin < out.size() ? out.substr(begin) : out;
}

}  // namespace assay::model
