// Rust's v0 mangling (RFC 2603), written out: Debian's libraries demangle it only inside binutils.
//
// Names refer back into themselves, so that a short hostile name may stand for a huge one: depth,
// work and output are limited.
#include <algorithm>
#include <utility>

#include "symbol/demangle/demangle.h"
#include "symbol/demangle/punycode.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxInputBytes = 64 << 10;
constexpr size_t kMaxOutputBytes = 16 << 10;
constexpr int kMaxDepth = 128;
constexpr int kMaxSteps = 100000;
constexpr uint64_t kMaxBoundLifetimes = 1024;

const char* basic_type(char tag) {
  switch (tag) {
    case 'a':
      return "i8";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'd':
      return "f64";
    case 'e':
      return "str";
    case 'f':
      return "f32";
    case 'h':
      return "u8";
    case 'i':
      return "isize";
    case 'j':
      return "usize";
    case 'l':
      return "i32";
    case 'm':
      return "u32";
    case 'n':
      return "i128";
    case 'o':
      return "u128";
    case 'p':
      return "_";
    case 's':
      return "i16";
    case 't':
      return "u16";
    case 'u':
      return "()";
    case 'v':
      return "...";
    case 'x':
      return "i64";
    case 'y':
      return "u64";
    case 'z':
      return "!";
    default:
      return nullptr;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::string run() {
    path(true);
    if (!failed_ && at_ < text_.size() && text_[at_] != '.') {
      printing_ = false;  // the crate that instantiated a generic function
      path(false);
    }
    if (failed_ || (at_ < text_.size() && text_[at_] != '.')) return "";
    return std::move(out_);
  }

 private:
  class Deeper {
   public:
    explicit Deeper(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxDepth || ++parser_.steps_ > kMaxSteps) parser_.failed_ = true;
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };
  struct Identifier {
    std::string_view text;
    bool punycode = false;
    uint64_t disambiguator = 0;
  };

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    if (at_ >= text_.size()) {
      failed_ = true;
      return '\0';
    }
    return text_[at_++];
  }
  bool eat(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void print(std::string_view text) {
    if (!printing_ || failed_) return;
    if (out_.size() + text.size() > kMaxOutputBytes) {
      failed_ = true;
      return;
    }
    out_ += text;
  }

  uint64_t base62() {
    if (eat('_')) return 0;
    uint64_t value = 0;
    while (!failed_) {
      char c = next();
      if (c == '_') return value + 1;
      uint64_t digit = c >= '0' && c <= '9'   ? c - '0'
                       : c >= 'a' && c <= 'z' ? c - 'a' + 10
                       : c >= 'A' && c <= 'Z' ? c - 'A' + 36
                                              : 99;
      if (digit == 99 || value > UINT64_MAX / 64) failed_ = true;
      value = value * 62 + digit;
    }
    return 0;
  }
  uint64_t optional_base62(char tag) { return eat(tag) ? base62() + 1 : 0; }

  Identifier identifier() {
    Identifier out;
    out.disambiguator = optional_base62('s');
    out.punycode = eat('u');
    uint64_t size = 0;
    if (peek() < '0' || peek() > '9') {
      failed_ = true;
      return out;
    }
    if (!eat('0')) {
      while (peek() >= '0' && peek() <= '9' && size < kMaxInputBytes)
        size = size * 10 + (next() - '0');
    }
    eat('_');
    if (size > text_.size() - at_) {
      failed_ = true;
      return out;
    }
    out.text = text_.substr(at_, size);
    at_ += size;
    return out;
  }
  void print(const Identifier& name) {
    if (!name.punycode) return print(name.text);
    auto decoded = decode_punycode(name.text);
    print(decoded ? *decoded : "punycode{" + std::string(name.text) + "}");
  }

  // Goes on at an earlier place of the name; what stands there is printed as if it stood here.
  template <class F>
  void back_reference(F parse) {
    size_t tag = at_ - 1;
    uint64_t target = base62();
    if (failed_ || target >= tag) {
      failed_ = true;
      return;
    }
    if (!printing_) return;
    size_t after = at_;
    at_ = target;
    parse();
    at_ = after;
  }

  void path(bool in_value) {
    Deeper deeper(*this);
    if (failed_) return;
    switch (next()) {
      case 'C':
        print(identifier());
        break;
      case 'N': {
        char space = next();
        path(in_value);
        Identifier name = identifier();
        if (space >= 'A' && space <= 'Z') {
          print("::{");
          print(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
          if (!name.text.empty()) {
            print(":");
            print(name);
          }
          print("#" + std::to_string(name.disambiguator) + "}");
        } else if (!name.text.empty()) {
          print("::");
          print(name);
        }
        break;
      }
      case 'M':
      case 'X': {
        char tag = text_[at_ - 1];
        optional_base62('s');
        bool was = std::exchange(printing_, false);  // where the impl stands says nothing new
        path(in_value);
        printing_ = was;
        print("<");
        type();
        if (tag == 'X') {
          print(" as ");
          path(false);
        }
        print(">");
        break;
      }
      case 'Y':
        print("<");
        type();
        print(" as ");
        path(false);
        print(">");
        break;
      case 'I':
        path(in_value);
        if (in_value) print("::");
        print("<");
        list([this] { generic_argument(); });
        print(">");
        break;
      case 'B':
        back_reference([this, in_value] { path(in_value); });
        break;
      default:
        failed_ = true;
        break;
    }
  }

  // Items up to "E", separated by commas; how many there were.
  template <class F>
  size_t list(F item) {
    size_t count = 0;
    while (!failed_ && !eat('E')) {
      if (count++ > 0) print(", ");
      item();
    }
    return count;
  }

  void generic_argument() {
    if (eat('L')) {
      lifetime(base62());
    } else if (eat('K')) {
      constant();
    } else {
      type();
    }
  }

  void lifetime(uint64_t index) {
    if (index == 0) return print("'_");
    if (index > bound_lifetimes_) {
      failed_ = true;
      return;
    }
    uint64_t depth = bound_lifetimes_ - index;
    print("'");
    if (depth < 26) {
      char letter = static_cast<char>('a' + depth);
      print(std::string_view(&letter, 1));
    } else {
      print("_" + std::to_string(depth));
    }
  }
  // for<'a, 'b> around what `inner` prints.
  template <class F>
  void with_binder(F inner) {
    uint64_t count = optional_base62('G');
    if (count > kMaxBoundLifetimes) failed_ = true;
    if (failed_) return;
    if (count > 0) {
      print("for<");
      for (uint64_t i = 0; i < count; ++i) {
        if (i > 0) print(", ");
        ++bound_lifetimes_;
        lifetime(1);
      }
      print("> ");
    }
    inner();
    bound_lifetimes_ -= count;
  }

  void type() {
    Deeper deeper(*this);
    if (failed_) return;
    char tag = next();
    if (const char* name = basic_type(tag)) return print(name);
    switch (tag) {
      case 'R':
      case 'Q':
        print("&");
        if (eat('L')) {
          if (uint64_t index = base62()) {
            lifetime(index);
            print(" ");
          }
        }
        if (tag == 'Q') print("mut ");
        type();
        break;
      case 'P':
      case 'O':
        print(tag == 'P' ? "*const " : "*mut ");
        type();
        break;
      case 'A':
      case 'S':
        print("[");
        type();
        if (tag == 'A') {
          print("; ");
          constant();
        }
        print("]");
        break;
      case 'T':
        print("(");
        if (list([this] { type(); }) == 1) print(",");
        print(")");
        break;
      case 'F':
        with_binder([this] { function_type(); });
        break;
      case 'D':
        print("dyn ");
        with_binder([this] { dyn_bounds(); });
        if (!eat('L')) {
          failed_ = true;
        } else if (uint64_t index = base62()) {
          print(" + ");
          lifetime(index);
        }
        break;
      case 'B':
        back_reference([this] { type(); });
        break;
      default:
        --at_;
        path(false);
        break;
    }
  }

  void function_type() {
    if (eat('U')) print("unsafe ");
    if (eat('K')) {
      print("extern \"");
      if (eat('C')) {
        print("C");
      } else {
        std::string abi(identifier().text);
        std::replace(abi.begin(), abi.end(), '_', '-');
        print(abi);
      }
      print("\" ");
    }
    print("fn(");
    list([this] { type(); });
    print(")");
    if (eat('u')) return;
    print(" -> ");
    type();
  }

  void dyn_bounds() {
    bool first = true;
    while (!failed_ && !eat('E')) {
      if (!first) print(" + ");
      first = false;
      dyn_trait();
    }
  }
  void dyn_trait() {
    // The trait's generic arguments and its associated types share one pair of brackets.
    bool open = path_with_open_generics();
    while (!failed_ && eat('p')) {
      print(open ? ", " : "<");
      open = true;
      print(identifier());
      print(" = ");
      type();
    }
    if (open) print(">");
  }
  bool path_with_open_generics() {
    Deeper deeper(*this);
    if (failed_) return false;
    if (eat('B')) {
      bool open = false;
      back_reference([this, &open] { open = path_with_open_generics(); });
      return open;
    }
    if (!eat('I')) {
      path(false);
      return false;
    }
    path(false);
    print("<");
    list([this] { generic_argument(); });
    return true;
  }

  void constant() {
    Deeper deeper(*this);
    if (failed_) return;
    if (eat('B')) return back_reference([this] { constant(); });
    char tag = next();
    if (tag == 'p') return print("_");
    if (std::string_view("abchijlmnostxy").find(tag) == std::string_view::npos) {
      failed_ = true;
      return;
    }
    bool negative = eat('n');
    size_t begin = at_;
    while (!failed_ && peek() != '_') {
      char c = next();
      if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) failed_ = true;
    }
    std::string_view digits = text_.substr(begin, at_ - begin);
    next();
    if (failed_) return;
    while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
    uint64_t value = 0;
    bool fits = digits.size() <= 16;
    for (char c : digits)
      value = value << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    if (tag == 'b') return print(value == 0 ? "false" : "true");
    if (tag == 'c') {
      if (!fits || value > 0x10ffff || value < 0x20 || (value >= 0xd800 && value < 0xe000)) {
        return print("'\\u{" + std::string(digits) + "}'");
      }
      std::string shown = "'";
      append_utf8(shown, static_cast<uint32_t>(value));
      return print(shown + "'");
    }
    if (negative) print("-");
    print(fits ? std::to_string(value) : "0x" + std::string(digits));
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
  bool failed_ = false;
  bool printing_ = true;
  int depth_ = 0;
  int steps_ = 0;
  uint64_t bound_lifetimes_ = 0;
};

}  // namespace

std::string demangle_rust_v0(std::string_view name) {
  if (!name.starts_with("_R") || name.size() > kMaxInputBytes) return "";
  std::string_view rest = name.substr(2);
  // A digit would be a later version of the encoding; paths begin with a capital.
  if (rest.empty() || rest[0] < 'A' || rest[0] > 'Z') return "";
  for (char c : rest) {
    if (static_cast<unsigned char>(c) >= 0x80) return "";
  }
  return Parser(rest).run();
}

}  // namespace assay::symbol
